//! The run itself.

use inferlet::run;

use crate::transcript::Transcript;
use crate::{cases, say};

async fn info(t: &mut Transcript) {
    let this = run::info();
    say!(t, "an id", !this.id.is_empty(), !this.inferlet.is_empty());
    say!(t, "tenant", this.tenant);
    say!(t, "seed", this.seed);
}

async fn limits(t: &mut Transcript) {
    for limit in run::limits() {
        say!(t, &limit.name, limit.allowed);
    }
    say!(t, "used", run::limit("max_tokens").unwrap().used, run::limit("max_controllers").unwrap().used);
}

cases! { "runs.info" => info, "runs.limits" => limits }
