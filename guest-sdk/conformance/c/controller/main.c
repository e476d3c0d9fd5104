#define TARTLET_CONTROLLER
#include "tartlet.h"
tartlet_result_start_answer_string start(tartlet_string config, tartlet_list_token prompt) { return (tartlet_result_start_answer_string){0}; }
tartlet_result_list_decision_string step(tartlet_list_steering_outcome outcomes) { return (tartlet_result_list_decision_string){0}; }
