"""Low-level bindings of the contract, for the guest SDKs that are compiled. Only for work on Tartlet."""
