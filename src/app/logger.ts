// JSON logs on stderr, one object per line. Fields with the name of a secret are never written, whoever passed them.
import type { Logger } from '../ports/logger.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LEVELS)[number];
const SECRET_NAME = /authorization|cookie|password|secret|token$|api_?key|encryption_?key/i;
/** Longest string that one field may bring; a stack trace fits. */
const FIELD_CHARS = 4_000;

export function isLogLevel(value: string): value is LogLevel {
  return (LEVELS as readonly string[]).includes(value);
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Gets whole lines without line end. */
  readonly write?: (line: string) => void;
  /** Fields of every line. */
  readonly fields?: Record<string, unknown>;
}

export function createLogger({ level, write = toStderr, fields: always }: LoggerOptions): Logger {
  const least = LEVELS.indexOf(level);
  const log = (at: LogLevel) => (message: string, fields?: Record<string, unknown>) => {
    if (LEVELS.indexOf(at) < least) return;
    write(
      JSON.stringify({
        time: new Date().toISOString(),
        level: at,
        message,
        ...always,
        ...clean(fields),
      }),
    );
  };
  return { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
}

function toStderr(line: string): void {
  process.stderr.write(`${line}\n`);
}

function clean(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !SECRET_NAME.test(name))
      .map(([name, value]) => [name, plain(value)]),
  );
}

function plain(value: unknown): unknown {
  if (value instanceof Error) {
    const { code } = value as { code?: unknown };
    const cause = value.cause === undefined ? undefined : plain(value.cause);
    return {
      name: value.name,
      message: value.message,
      code,
      stack: short(value.stack ?? ''),
      cause,
    };
  }
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return short(value);
  if (typeof value !== 'object' || value === null) return value;
  try {
    return (JSON.stringify(value)?.length ?? 0) > FIELD_CHARS ? '(too long)' : value;
  } catch {
    return '(not JSON)';
  }
}

function short(text: string): string {
  return text.length > FIELD_CHARS ? `${text.slice(0, FIELD_CHARS)}…` : text;
}
