/* The smallest program: an argument, output, a result. */

#include <stdio.h>

#include "tartlet.h"

tartlet_result run(tartlet_string input) {
  tartlet_string name = tartlet_json_text(input, "name", "world");
  printf("This is printed by a program in a sandbox.\n");
  return tartlet_ok_text(tartlet_format("Hello, %s!", name.data));
}
