# Writes numpytypes.zip: arrays of numpy's types that are no numbers, and with Fletcher checksums, as zarr-python 3.1
# and numcodecs 0.16 write them, each with its values as .npy. Run it in an environment with these two.
import os, shutil, warnings, zipfile
import numpy as np, zarr, numcodecs
from numcodecs import zarr3 as n3
warnings.simplefilter('ignore')
root='numpytypes'; shutil.rmtree(root, ignore_errors=True); os.mkdir(root)
data={
 'M8_ns': np.array([['2020-01-01','NaT','1969-12-31T23:59:59.5']],dtype='M8[ns]'),
 'M8': np.array([[1,2,3]]).astype('M8'),
 'M8_25us': np.array([[1,-2,3]]).astype('M8[25us]'),
 'm8_us': np.array([[1,-5,7]],dtype='m8[us]'),
 'U3': np.array([['ab','','日x𝄞']],dtype='U3'),
 'S4': np.array([[b'ab',b'',b'\xff\x01z9']],dtype='S4'),
 'V5': np.array([[b'ab',b'',b'\xff\x00z9\x01']],dtype='V5'),
 'U80': np.array([['x'*80,'','y']],dtype='U80'),
}
fills={'M8_ns':np.datetime64(5,'ns'),'m8_us':np.timedelta64(-3,'us'),'U3':'日b','S4':b'a\xff','V5':np.array(b'a\xff',dtype='V5')[()]}
for fmt in (2,3):
  for k,v in data.items():
    # (zarr-python stores M8 without a unit in little-endian order whatever the metadata says)
    for order in '<>' if k[0] in 'MmU' and k != 'M8' else '<':
      w=v.astype(v.dtype.newbyteorder(order))
      name=f"{root}/v{fmt}_{k}_{'big' if order=='>' else 'little'}"
      kw={} if k!='U80' else dict(compressors=numcodecs.Blosc('lz4') if fmt==2 else zarr.codecs.BloscCodec(cname='lz4'))
      if fmt==3 and order=='>': kw['serializer']=zarr.codecs.BytesCodec(endian='big'); w=v
      a=zarr.create_array(name,shape=v.shape,dtype=w.dtype,chunks=(1,2),zarr_format=fmt,fill_value=fills.get(k),**kw)
      a[:]=w
      np.save(name+'.npy', v)
    if k in fills:
      name=f"{root}/v{fmt}_{k}_fill"
      a=zarr.create_array(name,shape=v.shape,dtype=v.dtype,chunks=(1,2),zarr_format=fmt,fill_value=fills[k])
      np.save(name+'.npy', a[:])
v=np.arange(2305,dtype='u1').reshape(1,-1)*3
a=zarr.create_array(root+'/v2_fletcher32',shape=v.shape,dtype='u1',chunks=(1,2305),zarr_format=2,filters=[numcodecs.Fletcher32()],compressors=None); a[:]=v; np.save(root+'/v2_fletcher32.npy',v)
a=zarr.create_array(root+'/v3_fletcher32',shape=v.shape,dtype='u1',chunks=(1,2305),zarr_format=3,compressors=[n3.Fletcher32()]); a[:]=v; np.save(root+'/v3_fletcher32.npy',v)
with zipfile.ZipFile('numpytypes.zip', 'w', zipfile.ZIP_DEFLATED) as z:
  for folder, _, files in sorted(os.walk(root)):
    for f in sorted(files):
      p = os.path.join(folder, f)
      z.writestr(zipfile.ZipInfo(os.path.relpath(p, root)), open(p, 'rb').read(), zipfile.ZIP_DEFLATED)
shutil.rmtree(root)
