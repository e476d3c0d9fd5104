/* Says that it has begun, then waits. */
#include "tartlet.h"

tartlet_result run(tartlet_string input) {
  tartlet_log_print(tartlet_text("begun"));
  tartlet_sleep(tartlet_json_number(input, "seconds", 0));
  return tartlet_ok("null");
}
