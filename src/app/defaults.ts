// Where a host is and keeps its data when nothing is said. Apart from the configuration, which knows every adapter: the
// command line starts without them.

export const DEFAULT_PORT = 8787;
export const DEFAULT_DATA_DIR = '.data';
