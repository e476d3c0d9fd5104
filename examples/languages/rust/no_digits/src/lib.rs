//! A controller: writes no digit, at most as many tokens as its config says.

use inferlet::controller::{Branch, Controller, Decision, Sequence, Start, StepInfo};
use inferlet::{get_auto_model, Mask, Result};

#[derive(Clone)]
struct NoDigits {
    left: usize,
    mask: Mask,
}

#[inferlet::controller]
impl Controller for NoDigits {
    fn start(config: &str, _prompt: &[u32]) -> Result<Start<Self>> {
        let left = if config == "null" { 20 } else { config.parse()? };
        let mask = Mask::filter(&get_auto_model(), |bytes| !bytes.iter().any(u8::is_ascii_digit))?;
        Ok(Self { left, mask }.into())
    }

    fn step(&mut self, _sequence: &Sequence, _info: &StepInfo) -> Result<Decision> {
        if self.left == 0 {
            return Ok(Decision::Stop);
        }
        self.left -= 1;
        Ok(Decision::Branch(Branch { mask: Some(self.mask.clone()), ..Branch::default() }))
    }
}
