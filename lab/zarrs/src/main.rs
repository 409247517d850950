//! The zarrs crate as a peer of the benchmark, with two threads unless told otherwise:
//!
//!     zarrs-bench OP PATH [--threads N] [--again N] [--edge N] [--out DIR --shape … --chunks … --shard … --codec …]
//!
//! OP: full, random, slab, open, write, region. Does it once and then --again times;
//! prints one line of JSON as lab/arrays does. Elements come and go as the crate's own
//! ArrayBytes: a vector of numbers would be a copy of them.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use zarrs::array::{Array, ArrayBytes, ArrayMetadata, ArrayShardedReadableExt, ArrayShardedReadableExtCache, ArraySubset};
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

/// The elements of an array of fixed size, as the crate has them.
fn elements(data: ArrayBytes<'static>) -> Result<Vec<u8>> {
    Ok(data.into_fixed()?.into_owned())
}

/// Sum of every step-th word of four bytes: of the bits of float32 numbers.
fn check(data: &[u8], step: usize) -> u64 {
    data.chunks_exact(4).step_by(step).map(|b| u64::from(u32::from_le_bytes(b.try_into().unwrap()))).sum()
}

/// The generator of places of lab/arrays: Knuth's MMIX constants.
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

/// Seconds of wall and processor time, summed over what is timed.
#[derive(Clone, Copy, Default)]
struct Clock {
    wall: f64,
    cpu: f64,
}

impl Clock {
    fn time<T>(&mut self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let (t, c) = (Instant::now(), usage().0);
        let out = f()?;
        self.wall += t.elapsed().as_secs_f64();
        self.cpu += usage().0 - c;
        Ok(out)
    }
}

/// Processor seconds and peak resident KiB of the process.
fn usage() -> (f64, i64) {
    let mut u = unsafe { std::mem::zeroed::<libc::rusage>() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut u) };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (seconds(u.ru_utime) + seconds(u.ru_stime), u.ru_maxrss)
}

/// The boxes of an operation, with an array of this shape, as (start, shape).
fn boxes(op: &str, shape: &[u64], edge: u64) -> Vec<(Vec<u64>, Vec<u64>)> {
    if op == "random" {
        let mut places = Places(1);
        return (0..40).map(|_| (shape.iter().map(|n| places.next(n - edge + 1)).collect(), vec![edge; shape.len()])).collect();
    }
    let slab = |d: usize| {
        let (mut start, mut size) = (vec![0; shape.len()], shape.to_vec());
        (start[d], size[d]) = (size[d] / 2 + 1, 1);
        (start, size)
    };
    (0..shape.len()).map(slab).collect()
}

/// One repetition of an operation that reads: bytes and check.
fn read(op: &str, path: &str, edge: u64, clock: &mut Clock) -> Result<(usize, u64)> {
    if op == "full" {
        let data = clock.time(|| {
            let array = open(path)?;
            elements(array.retrieve_array_subset(&array.subset_all())?)
        })?;
        return Ok((data.len(), check(&data, 65537)));
    }
    let (array, cache) = clock.time(|| {
        let array = open(path)?;
        let cache = ArrayShardedReadableExtCache::new(&array);
        Ok((array, cache))
    })?;
    let (mut bytes, mut ck) = (0, 0);
    for (start, shape) in boxes(op, array.shape(), edge) {
        let subset = ArraySubset::new_with_start_shape(start, shape)?;
        let data = clock.time(|| elements(array.retrieve_array_subset_sharded_opt(&cache, &subset, &Default::default())?))?;
        (bytes, ck) = (bytes + data.len(), ck + check(&data, 4097));
    }
    Ok((bytes, ck))
}

/// Writes the numbers of a file as an array: bytes and no check.
fn write(path: &str, flags: &Flags, clock: &mut Clock) -> Result<(usize, u64)> {
    let data = std::fs::read(path)?;
    let (bytes, out, meta) = (data.len(), flags.get("--out").ok_or("--out is missing")?, metadata(flags)?);
    clock.time(|| {
        let array = Array::new_with_metadata(Arc::new(FilesystemStore::new(out)?), "/", meta)?;
        array.store_metadata()?;
        Ok(array.store_array_subset(&array.subset_all(), ArrayBytes::new_flen(data))?)
    })?;
    Ok((bytes, 0))
}

/// Opens an array again and again: no bytes, its first extent.
fn reopen(path: &str, clock: &mut Clock) -> Result<(usize, u64)> {
    let (times, first) = (1000, open(path)?.shape()[0]);
    clock.time(|| (0..times).try_for_each(|_| open(path).map(drop)))?;
    (clock.wall, clock.cpu) = (clock.wall / f64::from(times), clock.cpu / f64::from(times));
    Ok((0, first))
}

fn median(clocks: &[Clock], of: impl Fn(&Clock) -> f64) -> f64 {
    let mut v: Vec<f64> = clocks.iter().map(of).collect();
    v.sort_by(f64::total_cmp);
    (v[(v.len() - 1) / 2] + v[v.len() / 2]) / 2.0
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
    if op == "region" {
        let array = open(path)?;
        let data = elements(array.retrieve_array_subset(&ArraySubset::new_with_shape(vec![edge; array.shape().len()]))?)?;
        std::fs::write(flags.get("--out").ok_or("--out is missing")?, data)?;
        return Ok(());
    }
    let (mut clocks, mut bytes, mut ck) = (vec![], 0, 0);
    for _ in 0..=flags.number("--again", 0)? {
        let mut clock = Clock::default();
        (bytes, ck) = match op {
            "full" | "random" | "slab" => read(op, path, edge, &mut clock)?,
            "write" => write(path, &flags, &mut clock)?,
            "open" => reopen(path, &mut clock)?,
            other => return Err(format!("unknown operation {other}").into()),
        };
        clocks.push(clock);
    }
    let mut first = String::new();
    if clocks.len() > 1 {
        first = format!(r#""first_s":{:.9},"#, clocks.remove(0).wall);
    }
    println!(
        r#"{{{first}"s":{:.9},"cpu_s":{:.9},"bytes":{bytes},"hwm_kb":{},"ck":{ck}}}"#,
        median(&clocks, |c| c.wall),
        median(&clocks, |c| c.cpu),
        usage().1
    );
    Ok(())
}

fn main() {
    if let Err(e) = run() {
        eprintln!("zarrs-bench: {e}");
        std::process::exit(1);
    }
}
