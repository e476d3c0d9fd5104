/** Stands for an interface of the host's that the component's world does not have. */
export {};
