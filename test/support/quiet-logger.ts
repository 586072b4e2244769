// A logger that says nothing, for tests that look at no log.
import type { Logger } from '../../src/ports.ts';

export const quietLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
