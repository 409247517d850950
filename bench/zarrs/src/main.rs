//! The zarrs crate as a peer of the benchmark, with two threads:
//!
//!     zarrs-bench OP PATH [--threads N] [--edge N] [--out DIR --shape … --chunks … --shard … --codec …]
//!
//! OP: full, random, slab, open, write, region. Prints one line of JSON as
//! bench/arrays does. One small read comes before the clock starts.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use zarrs::array::{Array, ArrayMetadata, ArrayShardedReadableExt, ArrayShardedReadableExtCache, ArraySubset};
use zarrs::filesystem::FilesystemStore;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Arguments after OP and PATH, by name.
struct Flags(Vec<String>);

impl Flags {
    fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|a| a == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, otherwise: u64) -> Result<u64> {
        self.get(name).map_or(Ok(otherwise), |s| Ok(s.parse()?))
    }
}

fn open(path: &str) -> Result<Array<FilesystemStore>> {
    Ok(Array::open(Arc::new(FilesystemStore::new(path)?), "/")?)
}

/// Sum of every step-th number.
fn check(data: &[f32], step: usize) -> u64 {
    data.iter().step_by(step).map(|&v| v as u64).sum()
}

/// The generator of places of bench/arrays: Knuth's MMIX constants.
struct Places(u64);

impl Places {
    fn next(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Metadata of an array of float32 as `write` makes it.
fn metadata(flags: &Flags) -> Result<ArrayMetadata> {
    let get = |name: &str| flags.get(name).ok_or(format!("{name} is missing"));
    let codec = match get("--codec")? {
        "raw" => "",
        "zstd:3" => r#", {"name": "zstd", "configuration": {"level": 3, "checksum": false}}"#,
        "blosc-zstd:1" => {
            r#", {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}"#
        }
        other => return Err(format!("unknown codec {other}").into()),
    };
    let mut codecs = format!(r#"{{"name": "bytes", "configuration": {{"endian": "little"}}}}{codec}"#);
    let (shape, chunks) = (get("--shape")?, get("--chunks")?);
    if flags.get("--shard").is_some() {
        let crc = r#"{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}"#;
        codecs = format!(
            r#"{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [{chunks}], "codecs": [{codecs}], "index_codecs": [{crc}], "index_location": "end"}}}}"#
        );
    }
    let file = flags.get("--shard").unwrap_or(chunks);
    Ok(serde_json::from_str(&format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{shape}], "data_type": "float32", "fill_value": 0.0,
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{file}]}}}},
        "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}}, "codecs": [{codecs}]}}"#
    ))?)
}

fn run() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "version") {
        println!("zarrs crate {}", zarrs::version::version_str());
        return Ok(());
    }
    if args.len() < 3 {
        return Err("usage: zarrs-bench OP PATH [flags]".into());
    }
    let (op, path, flags) = (args[1].as_str(), args[2].as_str(), Flags(args[3..].to_vec()));
    let threads = flags.number("--threads", 2)? as usize;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    zarrs::config::global_config_mut().set_codec_concurrent_target(threads);
    let edge = flags.number("--edge", 64)?;
    if op != "write" && op != "region" {
        let array = open(path)?;
        let one = ArraySubset::new_with_shape(vec![1; array.shape().len()]);
        let _: Vec<f32> = array.retrieve_array_subset(&one)?;
    }
    let (mut seconds, mut bytes, mut ck) = (0.0, 0, 0);
    let read = |seconds: &mut f64, array: &Array<FilesystemStore>, cache: &ArrayShardedReadableExtCache, start: Vec<u64>, shape: Vec<u64>| -> Result<Vec<f32>> {
        let subset = ArraySubset::new_with_start_shape(start, shape)?;
        let t = Instant::now();
        let data = array.retrieve_array_subset_sharded_opt::<Vec<f32>>(cache, &subset, &Default::default())?;
        *seconds += t.elapsed().as_secs_f64();
        Ok(data)
    };
    match op {
        "full" => {
            let t = Instant::now();
            let array = open(path)?;
            let data: Vec<f32> = array.retrieve_array_subset(&array.subset_all())?;
            seconds = t.elapsed().as_secs_f64();
            (bytes, ck) = (4 * data.len(), check(&data, 65537));
        }
        "random" => {
            let mut places = Places(1);
            let array = open(path)?;
            let cache = ArrayShardedReadableExtCache::new(&array);
            for _ in 0..40 {
                let start = array.shape().iter().map(|n| places.next(n - edge + 1)).collect();
                let data = read(&mut seconds, &array, &cache, start, vec![edge; array.shape().len()])?;
                (bytes, ck) = (bytes + 4 * data.len(), ck + check(&data, 4097));
            }
        }
        "slab" => {
            let array = open(path)?;
            let cache = ArrayShardedReadableExtCache::new(&array);
            for d in 0..array.shape().len() {
                let (mut start, mut shape) = (vec![0; array.shape().len()], array.shape().to_vec());
                (start[d], shape[d]) = (shape[d] / 2 + 1, 1);
                let data = read(&mut seconds, &array, &cache, start, shape)?;
                (bytes, ck) = (bytes + 4 * data.len(), ck + check(&data, 4097));
            }
        }
        "open" => {
            let t = Instant::now();
            for _ in 0..1000 {
                ck = open(path)?.shape()[0];
            }
            seconds = t.elapsed().as_secs_f64() / 1000.0;
        }
        "write" => {
            // read the file in place: one copy in memory, as the others have
            let n = std::fs::metadata(path)?.len() as usize / 4;
            let mut data = vec![0f32; n];
            let raw = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast::<u8>(), 4 * n) };
            std::io::Read::read_exact(&mut std::fs::File::open(path)?, raw)?;
            let out = flags.get("--out").ok_or("--out is missing")?;
            let meta = metadata(&flags)?;
            let t = Instant::now();
            let array = Array::new_with_metadata(Arc::new(FilesystemStore::new(out)?), "/", meta)?;
            array.store_metadata()?;
            array.store_array_subset(&array.subset_all(), &data)?;
            seconds = t.elapsed().as_secs_f64();
            bytes = 4 * n;
        }
        "region" => {
            let array = open(path)?;
            let data: Vec<f32> = array.retrieve_array_subset(&ArraySubset::new_with_shape(vec![edge; array.shape().len()]))?;
            let raw = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), 4 * data.len()) };
            std::fs::write(flags.get("--out").ok_or("--out is missing")?, raw)?;
            return Ok(());
        }
        other => return Err(format!("unknown operation {other}").into()),
    }
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    println!(r#"{{"s":{seconds:.9},"bytes":{bytes},"hwm_kb":{},"ck":{ck}}}"#, usage.ru_maxrss);
    Ok(())
}

fn main() {
    if let Err(e) = run() {
        eprintln!("zarrs-bench: {e}");
        std::process::exit(1);
    }
}
