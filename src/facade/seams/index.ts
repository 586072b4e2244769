// Test seams (host-sample-test-seams.md), below /v1/host/sample: how a conformance suite drives and looks at what no client
// may. They are there in test mode alone, where the operator switched them on as well; never in production. They stand
// neither in discovery nor in the document of the API, ask for a key as every address does, and see their tenant's alone.
import type { Catalog } from '../../ports/catalog.ts';
import type { FacadeDeps } from '../deps.ts';
import type { Route } from '../route.ts';
import { agentSeams } from './dispatch-agent.ts';
import { expireRunRoute } from './expire-run.ts';
import { fanOutRoute } from './fan-out.ts';
import { liveInvokeRoute } from './live-invoke.ts';
import { runEventsRoute } from './run-events.ts';
import { withBrought, workflowSeams, type Brought } from './workflows.ts';

export interface Seams {
  /** With the definitions that tests brought along. */
  readonly catalog: Catalog;
  readonly routes: readonly Route[];
}

/** Undefined where they are not switched on. */
export function createSeams(deps: FacadeDeps): Seams | undefined {
  const { testMode, testSeams = false } = deps.config;
  if (!testMode || !testSeams) return undefined;
  deps.logger.warn('test seams are switched on: this host is not for production');
  const brought: Brought = new Map();
  const catalog = withBrought(deps.catalog, brought);
  const routes = [
    liveInvokeRoute(deps),
    runEventsRoute(deps),
    ...agentSeams(deps),
    fanOutRoute(deps),
    expireRunRoute(deps),
    ...workflowSeams(deps, brought),
  ];
  return { catalog, routes };
}
