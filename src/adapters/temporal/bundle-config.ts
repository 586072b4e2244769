// How the workflow code is bundled, beside what the SDK says. The sandbox evaluates every module again for each execution that
// it starts or revives: in one scope, with objects spread by the engine, that takes less than half of the time. What the code
// does, and in which order, is the same.
import type { WorkerOptions } from '@temporalio/worker';

type Bundling = NonNullable<NonNullable<WorkerOptions['bundlerOptions']>['webpackConfigHook']>;

/** The oldest Node that the product runs on has all of it. */
const TARGET = 'es2022';

interface SwcRule {
  readonly use?: { readonly options?: { readonly jsc?: { target: string } } };
}

export const inOneScope: Bundling = (config) => {
  const rules = (config.module?.rules ?? []) as readonly SwcRule[];
  const compilers = rules.flatMap(({ use }) => use?.options?.jsc ?? []);
  if (compilers.length === 0) throw new Error('the SDK compiles workflow code in another way now');
  for (const compiler of compilers) compiler.target = TARGET;
  const optimization = { ...config.optimization, concatenateModules: true };
  return {
    ...config,
    // Not what a file for browsers says that lies in a folder above.
    target: 'web',
    // Nor a package in one: the SDK prefers `x.ts`, however far above, to the `x.js` that a package names.
    resolve: { ...config.resolve, extensionAlias: {} },
    optimization: { ...optimization, providedExports: true, usedExports: true },
  };
};
