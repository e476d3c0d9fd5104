"""The process that runs tenants' programs: a host on the server's engine, with the front at the end of a socket."""
