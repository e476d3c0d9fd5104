use inferlet::{Args, Result, get_auto_model};
use inferlet::stop_condition::{StopCondition, ends_with_any, max_len};
use inferlet::Sampler;
use futures::future::join_all;

#[inferlet::main]
async fn main(_args: Args) -> Result<()> {
    let model = get_auto_model();
    let mut ctx_a = model.create_context();
    let mut ctx_b = model.create_context();
    let mut ctx_judge = model.create_context();

    ctx_a.fill_user("Write a warm, seasonal email subject line for a 20% off Fall skincare sale.");
    ctx_b.fill_user("Write a concise, urgency-driven email subject line for a 20% off Fall skincare sale.");

    // Run two generation tasks in parallel
    let (a, b) = futures::join!(
        ctx_a.generate(Sampler::top_p(0.7, 0.95), ends_with_any(model.eos_tokens())),
        ctx_b.generate(Sampler::top_k(30), ends_with_any(model.eos_tokens()))
    );

    ctx_judge.fill_user(&format!(
        "A: {} vs. B: {} \n Which will get more opens?",
        a.trim(), b.trim()
    ));

    let result = ctx_judge.generate(Sampler::greedy(), max_len(80)).await;
    println!("Judge decision: {}", result.trim());
    Ok(())
}
