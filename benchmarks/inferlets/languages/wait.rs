//! Says that it has begun, then waits.

use std::time::Duration;

use inferlet::{sleep, Args, Result};

#[inferlet::main]
async fn main(args: Args) -> Result<()> {
    println!("begun");
    sleep(Duration::from_secs_f64(args.get_or("seconds", 0.0)?)).await;
    Ok(())
}
