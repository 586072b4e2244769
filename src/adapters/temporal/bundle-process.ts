// Bundles the workflow code in a process of its own: the bundler takes some hundred megabytes, which a host that runs
// for months must not keep. Arguments: the draft's path, and the failure converter's path or ''.
import { writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import { inOneScope } from './bundle-config.ts';

const WORKFLOWS = fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url));
const INTERCEPTORS = fileURLToPath(new URL('../../../workflows/interceptors.ts', import.meta.url));

/** Errors go to stderr; what the bundler says besides is for its developers. */
const silent = () => undefined;
const [draft = '', failureConverterPath = ''] = process.argv.slice(2);
// Its compiler keeps a native library with what else is run, and not in the temporary folder.
process.env.XDG_CACHE_HOME = dirname(draft);
const { code } = await bundleWorkflowCode({
  workflowsPath: WORKFLOWS,
  workflowInterceptorModules: [INTERCEPTORS],
  failureConverterPath: failureConverterPath === '' ? undefined : failureConverterPath,
  webpackConfigHook: inOneScope,
  logger: {
    log: silent,
    trace: silent,
    debug: silent,
    info: silent,
    warn: silent,
    error: (message) => void process.stderr.write(`${message}\n`),
  },
});
await writeFile(draft, code, { mode: 0o600 });
