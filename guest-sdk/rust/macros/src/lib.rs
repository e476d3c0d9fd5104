//! The attributes of the crate `inferlet`: they leave what they mark as it is, and export it to the host.

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// Marks the one function that a run calls: `async` or not, with one argument (`Args`, or a type that the input is made of)
/// or none.
#[proc_macro_attribute]
pub fn main(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    match main_function(item.clone()) {
        Ok(function) => extended(item, &function.export()),
        Err(message) => extended(item, &failure(message)),
    }
}

/// Marks the `impl Controller for ...` of a program that steers generations.
#[proc_macro_attribute]
pub fn controller(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    match controlling_type(item.clone()) {
        Ok(name) => extended(item, &controller_export(&name)),
        Err(message) => extended(item, &failure(message)),
    }
}

struct Function {
    name: String,
    is_async: bool,
    has_argument: bool,
}

/// Finds `[async] fn name(...)`.
fn main_function(item: TokenStream) -> Result<Function, &'static str> {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let place = tokens.iter().position(|token| token.to_string() == "fn").ok_or("it marks a function")?;
    let is_async = tokens[..place].iter().any(|token| token.to_string() == "async");
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(arguments))) =
        (tokens.get(place + 1), tokens.get(place + 2))
    else {
        return Err("its function cannot be generic");
    };
    Ok(Function { name: name.to_string(), is_async, has_argument: !arguments.stream().is_empty() })
}

impl Function {
    fn export(&self) -> String {
        let (name, run) = (&self.name, if self.is_async { "run_async" } else { "run_sync" });
        let main = if self.has_argument { name.clone() } else { format!("|_: ::inferlet::Args| {name}()") };
        let body = format!("unsafe {{ ::inferlet::__private::{run}(input, length, {main}) }}");
        world("INFERLET", &export("run", "input: *mut u8, length: usize", &body))
    }
}

/// Finds `impl ... for Type`.
fn controlling_type(item: TokenStream) -> Result<String, &'static str> {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let place =
        tokens.iter().position(|token| token.to_string() == "for").ok_or("it marks an `impl Controller for ...`")?;
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let name: TokenStream = tokens[place + 1..].iter().take_while(|token| !is_body(token)).cloned().collect();
    Ok(name.to_string())
}

fn controller_export(name: &str) -> String {
    let start = "unsafe { STEERING.with(|steering| \
        ::inferlet::__private::start(steering, config, config_length, prompt, prompt_length)) }";
    let step = "unsafe { STEERING.with(|steering| ::inferlet::__private::step(steering, outcomes, length)) }";
    let exports = [
        format!(
            "::std::thread_local! {{ static STEERING: ::std::cell::RefCell<::std::option::Option<\
             ::inferlet::controller::Steering<{name}>>> = const {{ ::std::cell::RefCell::new(::std::option::Option::None) }}; }}"
        ),
        export("start", "config: *mut u8, config_length: usize, prompt: *mut u8, prompt_length: usize", start),
        export("step", "outcomes: *mut u8, length: usize", step),
    ];
    world("CONTROLLER", &exports.concat())
}

/// An export of the program with its post-return.
fn export(name: &str, parameters: &str, body: &str) -> String {
    format!(
        "#[export_name = \"{name}\"] unsafe extern \"C\" fn export_{name}({parameters}) -> *const u8 {{ {body} }}\
         #[export_name = \"cabi_post_{name}\"] extern \"C\" fn forget_{name}(_: *const u8) {{ \
             ::inferlet::__private::forget_result() }}"
    )
}

/// Exports, and the section by which `wasm-tools component new` and rustc's own linker know the world they are of.
fn world(name: &str, exports: &str) -> String {
    format!(
        "const _: () = {{ {exports} \
         #[cfg(target_family = \"wasm\")] #[used] #[link_section = \"component-type:tartlet\"] \
         static COMPONENT_TYPE: [u8; ::inferlet::__private::{name}.len()] = *::inferlet::__private::{name}; }};"
    )
}

fn failure(message: &str) -> String {
    format!("::std::compile_error!(\"this attribute is out of place: {message}\");")
}

fn extended(mut item: TokenStream, more: &str) -> TokenStream {
    item.extend(more.parse::<TokenStream>().expect("it is Rust"));
    item
}
