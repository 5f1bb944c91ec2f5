// Threads, channels, panics that unwind, hash maps and formatted floats.
use std::collections::HashMap;
use std::panic;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

fn collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let best = Arc::new(Mutex::new((0, 0)));
    let (sender, receiver) = mpsc::channel();
    let workers: Vec<_> = (0..6u64)
        .map(|worker| {
            let (best, sender) = (best.clone(), sender.clone());
            thread::spawn(move || {
                let mut counts: HashMap<u64, u64> = HashMap::new();
                for n in (1 + worker..120_000).step_by(6) {
                    let steps = collatz(n);
                    *counts.entry(steps % 50).or_default() += 1;
                    let mut best = best.lock().unwrap();
                    *best = (*best).max((steps, n));
                }
                let caught = (0..2000u64)
                    .filter(|n| panic::catch_unwind(|| assert!(n % 3 != worker % 3)).is_err())
                    .count();
                sender.send((worker, counts[&7], caught)).unwrap();
            })
        })
        .collect();
    drop(sender);
    workers.into_iter().for_each(|w| w.join().unwrap());
    let mut results: Vec<_> = receiver.iter().collect();
    results.sort();
    let root: f64 = (1..200_000).map(|n| (n as f64).sqrt().sin()).sum();
    println!("{:?} {:?} {:.9}", best.lock().unwrap(), results, root);
    std::process::exit(7);
}
