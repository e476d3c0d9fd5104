"""C declarations of the part of Wasmtime's C API (wasmtime.h, component.h, async.h of 50.0) that is used.

Two liberties that save cffi objects, and so time, at every call: addresses that are only passed on are integers
(`uintptr_t`, `size_t`), and component values are arrays of 64-bit words (see values.py).
"""

DECLARATIONS = """
typedef struct { uint64_t store_id; uint32_t index; } instance_t;
typedef struct { struct { uint64_t store_id; uint32_t index; } owner; uint32_t index; void *unused; } func_t;
typedef struct { size_t size; char *data; } byte_vec_t;

typedef void (*host_function_t)(void *data, size_t context, void *type, uint64_t *args, size_t num_args,
    uint64_t *results, size_t num_results, uintptr_t *error, uintptr_t *continuation);
typedef uintptr_t (*destructor_t)(void *data, size_t context, uint32_t rep);
typedef uintptr_t (*epoch_callback_t)(size_t context, void *data, uint64_t *delta, uint8_t *kind);

uintptr_t wasmtime_error_new(const char *message);
void wasmtime_error_message(uintptr_t error, byte_vec_t *message);
void wasmtime_error_delete(uintptr_t error);
void wasm_byte_vec_new(uint64_t *out, size_t size, const char *data);
void wasm_byte_vec_delete(byte_vec_t *);

void wasmtime_config_async_stack_size_set(void *config, size_t bytes);
void wasmtime_config_concurrency_support_set(void *config, bool enable);
void wasmtime_config_wasm_function_references_set(void *config, bool enable);
void wasmtime_config_wasm_stack_switching_set(void *config, bool enable);
void wasmtime_config_wasm_custom_page_sizes_set(void *config, bool enable);
void wasmtime_config_wasm_wide_arithmetic_set(void *config, bool enable);
void wasmtime_config_wasm_component_model_async_set(void *config, bool enable);
void wasmtime_config_wasm_component_model_more_async_builtins_set(void *config, bool enable);
void wasmtime_config_wasm_component_model_async_stackful_set(void *config, bool enable);
void wasmtime_config_wasm_component_model_map_set(void *config, bool enable);
void wasmtime_engine_increment_epoch(void *engine);

uintptr_t wasmtime_component_linker_instance_add_func_async(void *linker_instance, const char *name, size_t name_len,
    host_function_t, void *data, void *finalizer);
uintptr_t wasmtime_component_linker_instance_add_resource(void *linker_instance, const char *name, size_t name_len,
    void *type, destructor_t, void *data, void *finalizer);
void *wasmtime_component_resource_type_new_host(uint32_t type);
void wasmtime_component_resource_type_delete(void *);
void *wasmtime_component_get_export_index(void *component, void *instance, const char *name, size_t name_len);
void wasmtime_component_export_index_delete(void *);

void *wasmtime_store_new(void *engine, void *data, void *finalizer);
void wasmtime_store_delete(void *store);
size_t wasmtime_store_context(void *store);
void wasmtime_store_limiter(void *store, int64_t memory_bytes, int64_t table_elements, int64_t instances,
    int64_t tables, int64_t memories);
void wasmtime_store_epoch_deadline_callback(void *store, epoch_callback_t, void *data, void *finalizer);
void wasmtime_context_set_epoch_deadline(size_t context, uint64_t ticks);

void *wasmtime_component_linker_instantiate_async(void *linker, size_t context, void *component, instance_t *out,
    uintptr_t *error);
bool wasmtime_component_instance_get_func(instance_t *, size_t context, void *export_index, func_t *out);
void *wasmtime_component_func_call_async(func_t *, size_t context, uint64_t *args, size_t num_args, uint64_t *results,
    size_t num_results, uintptr_t *error);
bool wasmtime_call_future_poll(void *future);
void wasmtime_call_future_delete(void *future);

uint64_t *wasmtime_component_val_new(uint64_t *value);
void wasmtime_component_val_delete(uint64_t *value);
void wasmtime_component_val_clone(uint64_t *value, uint64_t *out);
void wasmtime_component_vallist_new_uninit(uint64_t *out, size_t size);
void wasmtime_component_valtuple_new_uninit(uint64_t *out, size_t size);
void wasmtime_component_valrecord_new_uninit(uint64_t *out, size_t size);
void wasmtime_component_valflags_new_uninit(uint64_t *out, size_t size);

uintptr_t wasmtime_component_resource_host_new(bool owned, uint32_t rep, uint32_t type);
uint32_t wasmtime_component_resource_host_rep(uintptr_t);
void wasmtime_component_resource_host_delete(uintptr_t);
uintptr_t wasmtime_component_resource_any_to_host(size_t context, uintptr_t any, uintptr_t *host);
uintptr_t wasmtime_component_resource_host_to_any(size_t context, uintptr_t host, uint64_t *any);

size_t strlen(const char *);
"""
