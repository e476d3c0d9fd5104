/* Masks: sets of tokens that stay on the host. */

#include <ctype.h>

#include "constrained.h"
#include "vocabulary.h"

static tartlet_mask of(tartlet_list_token tokens) { return tartlet_mask_tokens(model(), tokens, &f); }

static tartlet_list_token range(tartlet_token from, tartlet_token to) {
  tartlet_list_token tokens = same_token(from, to - from);
  for (tartlet_token i = 0; i < tokens.length; i++) tokens.data[i] = from + i;
  return tokens;
}

static tartlet_mask all(void) { return tartlet_mask_all(model(), NULL); }

static tartlet_string count(tartlet_mask mask) { return num(tartlet_mask_count(mask)); }

static tartlet_string has(tartlet_mask mask, tartlet_token token) { return flag(tartlet_mask_allows(mask, token, NULL)); }

static tartlet_mask both(tartlet_mask one, tartlet_mask other) {
  return tartlet_mask_intersection(one, IDS(tartlet_mask_id(other)), NULL);
}

static tartlet_mask either(tartlet_mask one, tartlet_mask other) {
  return tartlet_mask_union(one, IDS(tartlet_mask_id(other)), NULL);
}

static tartlet_mask not_in(tartlet_mask mask) { return tartlet_mask_complement(mask, NULL); }

static tartlet_list_u32 same_id(tartlet_mask mask, size_t number) {
  tartlet_list_token ids = same_token(tartlet_mask_id(mask), number);
  return (tartlet_list_u32){ids.data, ids.length};
}

static void tokens(void) {
  SAY("empty", count(of((tartlet_list_token){0})));
  tartlet_mask mask = of(TOKENS(0, 257, 65, 65));
  SAY("three", count(mask), has(mask, 65), has(mask, 66));
  ATTEMPT("out of range", of(TOKENS(258)));
}

static bool is_a(tartlet_string bytes) { return bytes.length == 1 && bytes.data[0] == 'a'; }

static void words(void) {
  uint64_t five[] = {0x8000000000000001, 0, 0, MOST, 2}, beyond[] = {0, 0, 0, 0, 4}, one = 1;
  tartlet_mask mask = tartlet_mask_words(model(), (tartlet_list_u64){five, 5}, NULL);
  tartlet_token some[] = {0, 1, 62, 63, 64, 191, 192, 255, 256, 257};
  tartlet_string flags[10];
  SAY("count", count(mask));
  for (int i = 0; i < 10; i++) flags[i] = has(mask, some[i]);
  SAY("some", list(flags, 10));
  ATTEMPT("too few", tartlet_mask_words(model(), (tartlet_list_u64){&one, 1}, &f));
  ATTEMPT("beyond the vocabulary", tartlet_mask_words(model(), (tartlet_list_u64){beyond, 5}, &f));
  tartlet_mask with_a = mask_where(model(), is_a);
  SAY("by their bytes", count(with_a), has(with_a, 97));
}

static void all_case(void) {
  tartlet_mask mask = all();
  SAY("all", count(mask), has(mask, 0), has(mask, 257));
}

static void intersection(void) {
  tartlet_mask mask = both(of(range(0, 100)), of(range(90, 258)));
  SAY("both", count(mask), has(mask, 89), has(mask, 90), has(mask, 99), has(mask, 100));
  tartlet_mask one = of(TOKENS(1, 2, 3)), two = of(TOKENS(2, 3)), three = of(TOKENS(3, 4));
  SAY("three", count(tartlet_mask_intersection(one, IDS(tartlet_mask_id(two), tartlet_mask_id(three)), NULL)));
  SAY("with nothing", count(tartlet_mask_intersection(one, (tartlet_list_u32){0}, NULL)));
  ATTEMPT("65 of them", tartlet_mask_intersection(one, same_id(two, 65), &f));
}

static void union_case(void) {
  tartlet_mask mask = either(of(TOKENS(1, 2)), of(TOKENS(2, 3)));
  SAY("either", count(mask), has(mask, 3));
  tartlet_mask one = of(TOKENS(1)), two = of(TOKENS(2)), three = of(TOKENS(3));
  SAY("three", count(tartlet_mask_union(one, IDS(tartlet_mask_id(two), tartlet_mask_id(three)), NULL)));
  ATTEMPT("65 of them", tartlet_mask_union(one, same_id(two, 65), &f));
}

static void complement(void) {
  tartlet_mask others = not_in(of(TOKENS(0, 257)));
  SAY("others", count(others), has(others, 0), has(others, 1));
  SAY("less", count(both(all(), not_in(of(TOKENS(5))))));
}

static void restrict_case(void) {
  tartlet_mask mask = tartlet_mask_restrict(of(TOKENS(1, 2, 3)), TOKENS(2, 3, 4), NULL);
  SAY("those", count(mask), has(mask, 1), has(mask, 2), has(mask, 4));
  ATTEMPT("out of range", tartlet_mask_restrict(mask, TOKENS(258), &f));
}

static void count_case(void) { SAY("counts", count(of((tartlet_list_token){0})), count(of(TOKENS(7))), count(all())); }

static void allows(void) {
  tartlet_mask mask = of(TOKENS(7));
  SAY("seven, eight", has(mask, 7), has(mask, 8));
  ATTEMPT("out of range", tartlet_mask_allows(mask, 258, &f));
}

static void id(void) {
  tartlet_mask one = of(TOKENS(7)), two = of(TOKENS(7));
  SAY("their own", flag(tartlet_mask_id(one) != tartlet_mask_id(two)));
  SAY("the same at every call", flag(tartlet_mask_id(one) == tartlet_mask_id(one)));
}

static bool are_digits(tartlet_string bytes) {
  for (size_t i = 0; i < bytes.length; i++)
    if (!isdigit((unsigned char)bytes.data[i])) return false;
  return bytes.length > 0;
}

static bool is_odd(tartlet_string bytes) { return bytes.length != 1 || (unsigned char)bytes.data[0] % 2 == 1; }

static void by_bytes(void) {
  tartlet_mask digits = mask_where(model(), are_digits), odd = mask_where(model(), is_odd);
  SAY("counts", count(digits), count(odd), count(both(digits, odd)), count(either(digits, odd)),
      count(both(odd, not_in(digits))), count(not_in(odd)));
}

static tartlet_draft masked(const char *text, tartlet_list_token mask, tartlet_constraint constraint, uint32_t tokens) {
  tartlet_option_u32 id = {true, tartlet_mask_id(of(mask))};
  return constrained_with(filled(text), constraint, id, tartlet_max_tokens(tokens), tartlet_greedy());
}

static void in_use(void) {
  tartlet_constraint unbound = {0};
  SAY("one token", nums(masked("Once", TOKENS(67), unbound, 3).tokens));
  ATTEMPT("an empty mask", masked("x", (tartlet_list_token){0}, unbound, 1));
  SAY("with a constraint", nums(masked("Once", TOKENS(67, 68), tokens_only(TOKENS(68, 69)), 3).tokens));
  ATTEMPT("which leave nothing", masked("x", TOKENS(67), CHOICES("D"), 3));
}

static void many(void) {
  tartlet_mask kept[1024];
  for (tartlet_token i = 0; i < 1024; i++) kept[i] = of(TOKENS(i % 258));
  ATTEMPT("one more", of(TOKENS(1)));
  for (int i = 0; i < 1024; i++) tartlet_mask_drop(kept[i]);
  ATTEMPT_VALUE("with room", count(of(TOKENS(1))));
}

const test_case mask_cases[] = {
    {"constraints.mask.tokens", tokens},
    {"constraints.mask.words", words},
    {"constraints.mask.all", all_case},
    {"constraints.mask.intersection", intersection},
    {"constraints.mask.union", union_case},
    {"constraints.mask.complement", complement},
    {"constraints.mask.restrict", restrict_case},
    {"constraints.mask.count", count_case},
    {"constraints.mask.allows", allows},
    {"constraints.mask.id", id},
    {"constraints.masks-by-bytes", by_bytes},
    {"constraints.masks-in-use", in_use},
    {"constraints.many-masks", many},
    {0},
};
