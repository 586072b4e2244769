// A logger that says nothing, for tests that look at no log.
import type { Logger } from '../../src/ports/logger.ts';

export const quietLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
