/* Forward passes. The fake engine thinks that token n + 1 follows token n, with a probability of a half. */

#include "passes.h"

static tartlet_string top_tokens(tartlet_row row) {
  tartlet_string tokens[32];
  for (size_t i = 0; i < row.top.length; i++) tokens[i] = num(row.top.data[i].token);
  return list(tokens, row.top.length);
}

static tartlet_string top_numbers(tartlet_row row) {
  tartlet_string numbers[32];
  for (size_t i = 0; i < row.top.length; i++) numbers[i] = real(row.top.data[i].log_probability);
  return list(numbers, row.top.length);
}

static void say_pass(tartlet_findings found) {
  SAY("log-probabilities", reals(found.log_probabilities));
  for (size_t i = 0; i < found.rows.length; i++) {
    tartlet_row row = found.rows.data[i];
    if (row.sampled.is_some)
      SAY("sampled", num(row.sampled.value.token), real(row.sampled.value.log_probability));
    else
      SAY("sampled", none());
    SAY("top", top_tokens(row), top_numbers(row));
    SAY("given", reals(row.given));
    SAY("entropy", row.entropy.is_some ? real(row.entropy.value) : none());
    SAY("logits", num(2 * row.logits.length), first_logits(row, 0, 2));
  }
}

static void forward(void) {
  tartlet_context context = filled("A");
  tartlet_request asked[] = {
      {0},
      {.sampling = {true, tartlet_greedy()}, .sample_index = UINT32_MAX, .top = 2, .given = TOKENS(66, 0, 257),
       .entropy = true, .logits = true},
      {.row = 2, .top = 1},
  };
  say_pass(look(context, TOKENS(66, 70), (tartlet_forward_options){.log_probabilities = true, .requests = {asked, 3}}));
  tartlet_findings found = look(context, TOKENS(67), (tartlet_forward_options){0});
  SAY("nothing asked", num(found.log_probabilities.length), num(found.rows.length));
  SAY("context", nums(tartlet_context_tokens(context)));
}

static tartlet_forward_options with_parents(tartlet_list_u32 parents) {
  return (tartlet_forward_options){.parents = {true, parents}};
}

static tartlet_forward_options asking(tartlet_request request, size_t number) {
  tartlet_request *all = tartlet_new(number * sizeof *all);
  for (size_t i = 0; i < number; i++) all[i] = request;
  return (tartlet_forward_options){.requests = {all, number}};
}

static void limits(void) {
  tartlet_context context = filled("A");
  tartlet_list_token one = TOKENS(66), two = TOKENS(66, 67), flat = same_token(0, 257);
  tartlet_forward_options plain = {0};
  ATTEMPT("out of range", look(context, TOKENS(UINT32_MAX), plain));
  ATTEMPT("a row that is not there", look(context, one, asking((tartlet_request){.row = 2}, 1)));
  ATTEMPT("a parent that comes later", look(context, two, with_parents(IDS(2, 0))));
  ATTEMPT("too few parents", look(context, two, with_parents(IDS(0))));
  ATTEMPT("too large a tree", look(context, same_token(66, 257), with_parents((tartlet_list_u32){flat.data, 257})));
  ATTEMPT("too many asked", look(context, one, asking((tartlet_request){0}, 513)));
  ATTEMPT("too many samples", look(context, one, asking((tartlet_request){.sampling = {true, tartlet_greedy()}}, 65)));
  ATTEMPT("too many rows of logits", look(context, one, asking((tartlet_request){.logits = true}, 9)));
  ATTEMPT("too many tokens", look(context, same_token(66, 2048), plain));
  ATTEMPT("a position that is taken", look(context, one, (tartlet_forward_options){.positions = {true, IDS(0)}}));
  ATTEMPT("an empty context", look(filled(""), one, plain));
  SAY("the context is free", num(tartlet_context_length(context)));
}

static void tree(void) {
  tartlet_context context = filled("A");
  tartlet_request asked[5];
  for (uint32_t i = 0; i < 5; i++) asked[i] = (tartlet_request){.row = i + 1, .top = 1};
  tartlet_forward_options options = with_parents(IDS(0, 0, 1, 2, 2));
  options.log_probabilities = true, options.requests = (tartlet_list_request){asked, 5};
  tartlet_findings found;
  tartlet_pass pass = compute(context, TOKENS(66, 80, 67, 81, 90), options, &found);
  SAY("log-probabilities", reals(found.log_probabilities));
  tartlet_string likely[5];
  for (int i = 0; i < 5; i++) likely[i] = num(found.rows.data[i].top.data[0].token);
  SAY("most likely", list(likely, 5));
  ATTEMPT("not a path", tartlet_pass_commit(pass, IDS(1, 4), &f));
  ATTEMPT("a path", tartlet_pass_commit(pass, IDS(2, 4), &f));
  SAY("context", nums(tartlet_context_tokens(context)));
  found = look(context, TOKENS(90, 91), (tartlet_forward_options){.positions = {true, IDS(10, 20)}});
  SAY("with gaps", num(found.rows.length));
}

static tartlet_pass start(tartlet_context context) {
  return tartlet_forward_forward(context, TOKENS(66), &(tartlet_forward_options){.log_probabilities = true}, &f);
}

static void ready(void) {
  tartlet_pass pass = start(filled("A"));
  tartlet_event event = tartlet_pass_ready(pass);
  SAY("the same at every call", flag(tartlet_pass_ready(pass) == event));
  SAY("ready", flag(is_ready(event)));
}

static void read_pass(void) {
  tartlet_pass pass = start(filled("A"));
  ATTEMPT("too early", tartlet_pass_read(pass, &f));
  tartlet_findings found = tartlet_pass_wait(pass, NULL);
  SAY("found", reals(found.log_probabilities), num(found.rows.length));
  ATTEMPT("twice", tartlet_pass_read(pass, &f));
}

static void commit(void) {
  tartlet_context context = filled("A"), other = filled("A");
  tartlet_findings found;
  tartlet_pass pass = compute(context, TOKENS(66, 67, 68), (tartlet_forward_options){0}, &found);
  ATTEMPT("not from the beginning", tartlet_pass_commit(pass, IDS(2), &f));
  ATTEMPT("a row that is not there", tartlet_pass_commit(pass, IDS(4), &f));
  ATTEMPT("two of them", tartlet_pass_commit(pass, IDS(1, 2), &f));
  SAY("context", nums(tartlet_context_tokens(context)));
  pass = compute(context, TOKENS(69), (tartlet_forward_options){0}, &found);
  ATTEMPT("nothing", tartlet_pass_commit(pass, (tartlet_list_u32){0}, &f));
  SAY("context", nums(tartlet_context_tokens(context)));
  pass = start(other);
  ATTEMPT("too early", tartlet_pass_commit(pass, IDS(1), &f));
  tartlet_wait_ready(tartlet_pass_ready(pass));
  ATTEMPT("all", tartlet_pass_commit(pass, IDS(1), &f));
  ATTEMPT("twice", tartlet_pass_commit(pass, IDS(1), &f));
  SAY("length", num(tartlet_context_length(other)));
}

static void discard(void) {
  tartlet_context context = filled("A");
  tartlet_findings found;
  tartlet_pass pass = compute(context, TOKENS(66), (tartlet_forward_options){0}, &found);
  ATTEMPT("busy", tartlet_fill(context, "x", &f));
  SAY("a fork has none of it", nums(tartlet_context_tokens(tartlet_context_fork(context, NULL))));
  tartlet_pass_discard(pass);
  tartlet_pass_discard(pass);
  ATTEMPT("free", tartlet_fill(context, "x", &f));
  SAY("context", nums(tartlet_context_tokens(context)));
}

static void many(void) {
  tartlet_context contexts[65];
  tartlet_pass passes[64];
  for (int i = 0; i < 65; i++) contexts[i] = filled("A");
  for (int i = 0; i < 64; i++) passes[i] = start(contexts[i]);
  ATTEMPT("one more", start(contexts[64]));
  for (int i = 0; i < 64; i++) tartlet_pass_drop(passes[i]);
  ATTEMPT("with room", start(contexts[64]));
}

static void scoring(void) {
  tartlet_context context = filled("A");
  SAY("scores", scores(context, (const char *[]){"BCD", "BX", "Q"}, 3));
  SAY("one by one", reals(line(context, "BCX")));
  tartlet_findings found =
      look(context, (tartlet_list_token){0}, asking((tartlet_request){.top = 2, .entropy = true}, 1));
  SAY("ahead", top_tokens(found.rows.data[0]), real(found.rows.data[0].entropy.value));
  SAY("context", nums(tartlet_context_tokens(context)));
}

/* Appends what a greedy sampler chooses as long as that is the draft's next token, and one token more. */
static tartlet_string verify(tartlet_context context, tartlet_list_token draft) {
  tartlet_request asked[64];
  uint32_t path[64];
  tartlet_token chosen[64];
  size_t number = 0;
  for (uint32_t row = 0; row <= draft.length; row++)
    asked[row] = (tartlet_request){.row = row, .sampling = {true, tartlet_greedy()}, .sample_index = row};
  tartlet_findings found;
  tartlet_forward_options options = {.requests = {asked, draft.length + 1}};
  tartlet_pass pass = compute(context, draft, options, &found);
  do {
    path[number] = (uint32_t)number + 1;
    chosen[number] = found.rows.data[number].sampled.value.token;
    number++;
  } while (number <= draft.length && chosen[number - 1] == draft.data[number - 1]);
  tartlet_pass_commit(pass, (tartlet_list_u32){path, number - 1}, NULL);
  tartlet_pass_drop(pass);
  tartlet_context_fill_tokens(context, (tartlet_list_token){chosen + number - 1, 1}, NULL);
  return nums((tartlet_list_token){chosen, number});
}

static void verify_case(void) {
  tartlet_context context = filled("A");
  SAY("right for a while", verify(context, TOKENS(66, 67, 90, 91)));
  SAY("context", nums(tartlet_context_tokens(context)));
  SAY("wrong at once", verify(context, TOKENS(1)));
  /* The SDK has no such function, which would say so by itself. */
  SAY("too long", T("error invalid-argument, \"the number of tokens in draft must be from 0 to 63, not 64\", \"\""));
}

const test_case forward_cases[] = {
    {"forward.forward", forward},
    {"forward.limits", limits},
    {"forward.tree", tree},
    {"forward.pass.ready", ready},
    {"forward.pass.read", read_pass},
    {"forward.pass.commit", commit},
    {"forward.pass.discard", discard},
    {"forward.many", many},
    {"forward.scoring", scoring},
    {"forward.verify", verify_case},
    {0},
};
