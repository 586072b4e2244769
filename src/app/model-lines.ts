// What the commands say of models at their start: which provider is asked for which, and whether each endpoint answers.
// Nothing waits for that, no tokens are spent, and no key is shown.
import { printable } from '../words/printable.js';
import type { EndpointState, ModelEndpoint, Models } from '../ports/models.ts';

/** Time in ms in which an endpoint has to give its list of models. */
const CHECK_LIMIT_MS = 5_000;
/** Models that one line names; of more their number is told. */
const NAMED_MODELS = 5;

export interface ModelLines {
  readonly models: Pick<Models, 'endpoints'>;
  readonly say: (line: string) => void;
  /** Of the process: when it ends nothing more is said. */
  readonly signal?: AbortSignal;
}

/** The checks go on in the background; their end is returned for tests. */
export async function sayModels({ models, say, signal }: ModelLines): Promise<void> {
  const endpoints = models.endpoints();
  const [first, ...others] = endpoints.map((each) => `${each.provider} (${named(each.models)})`);
  // Nobody falls back on another provider: the others are asked for runs that name them.
  const asked = others.length > 0 ? `; for runs that name it ${others.join(', ')}` : '';
  say(`Models         ${first === undefined ? 'scripted: no endpoint is asked' : first + asked}`);
  await Promise.all(
    endpoints.map(async (endpoint) => {
      const limit = AbortSignal.timeout(CHECK_LIMIT_MS);
      const state = await endpoint.check(AbortSignal.any(signal ? [signal, limit] : [limit]));
      const late = limit.aborted ? ` within ${CHECK_LIMIT_MS / 1000} s` : '';
      if (signal?.aborted) return;
      say(`Endpoint       ${endpoint.provider} ${stateText(endpoint, state, late)}`);
    }),
  );
}

function named(models: readonly string[]): string {
  const more = models.length - NAMED_MODELS;
  return [...models.slice(0, NAMED_MODELS), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

function stateText(
  { models }: Pick<ModelEndpoint, 'models'>,
  state: EndpointState,
  late: string,
): string {
  switch (state.kind) {
    case 'answers': {
      const { missing } = state;
      const count = `${state.count} ${state.count === 1 ? 'model' : 'models'}`;
      const [names, some] = missing.length > 0 ? [missing, ' not'] : [models, ''];
      const are = names.length === 1 ? 'is' : 'are';
      return `answers (${count}; ${named(names)} ${are}${some} among them)`;
    }
    case 'refuses': {
      const what =
        state.status === 401 || state.status === 403
          ? `refuses the key (${state.status})`
          : `answers, but not with its models (${state.status})`;
      return state.said === '' ? what : `${what}: ${printable(state.said)}`;
    }
    case 'silent':
      return `does not answer${late}`;
  }
}
