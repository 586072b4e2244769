// The limit of time that the SDK gives a workflow task, which it takes from `vm`: when it strikes, the task fails, and
// the process goes on (architecture §3.3). In a process of its own, since what this guards from ends the process.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const THREAD = fileURLToPath(new URL('../support/limited-thread.js', import.meta.url));
const PRELOADS = ['workflow-thread.js', 'async-stack.js'];

describe('a workflow task above its limit of time fails alone (nodejs/node#38503)', () => {
  it.each(PRELOADS)('in a thread that begins with %s', async (name) => {
    const preload = new URL(`../../src/adapters/temporal/${name}`, import.meta.url).href;
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [THREAD, preload]);
    expect(JSON.parse(stdout)).toEqual([
      'ERR_SCRIPT_EXECUTION_TIMEOUT',
      'done in context',
      'ERR_SCRIPT_EXECUTION_TIMEOUT',
      'done in context',
    ]);
    expect(stderr).toBe('');
  });
});
