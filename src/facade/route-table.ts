// Every route that this deployment serves, the document of them among them.
import type { FacadeDeps } from './deps.ts';
import type { Majors } from './majors.ts';
import { openApiDocument, openApiRoute } from './openapi.ts';
import type { PageSessions } from './page-sessions.ts';
import type { Route } from './route.ts';
import { buildRoutes } from './routes/builds.ts';
import { cancelRoute } from './routes/cancel.ts';
import { causationRoutes } from './routes/causation.ts';
import { cohortRoutes } from './routes/cohorts.ts';
import { conversationRoutes } from './routes/conversation.ts';
import { catalogRoutes } from './routes/catalog.ts';
import { diffRoutes } from './routes/diff.ts';
import { debugBundleRoute } from './routes/debug-bundle.ts';
import { discoveryRoute } from './routes/discovery.ts';
import { eventsRoute } from './routes/events.ts';
import { healthRoutes } from './routes/health.ts';
import { interruptRoute } from './routes/interrupts.ts';
import { opensentienceRoutes } from './routes/opensentience.ts';
import { overviewRoute } from './routes/overview.ts';
import { forkRoute } from './routes/fork.ts';
import { pauseRoutes } from './routes/pause.ts';
import { pageLinkRoutes } from './routes/page-link.ts';
import { pollRoute } from './routes/poll.ts';
import { childrenRoute } from './routes/children.ts';
import { questionsRoute } from './routes/questions.ts';
import { retentionRoutes } from './routes/retention.ts';
import { runBundleRoute } from './routes/run-bundle.ts';
import { runAtRoute } from './routes/run-at.ts';
import { runRoutes } from './routes/runs.ts';
import { sessionEventsRoute } from './routes/session-events.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { skipRoute } from './routes/skip.ts';
import { signInLinkRoute } from './routes/sign-in-link.ts';
import { subjectRoutes } from './routes/subjects.ts';
import type { StreamRegistry } from './stream-registry.ts';

export interface FacadeParts {
  readonly streams: StreamRegistry;
  readonly sessions: PageSessions;
  readonly majors: Majors;
  readonly isDraining: () => boolean;
}

export function routesOf(
  deps: FacadeDeps,
  { streams, sessions, majors, isDraining }: FacadeParts,
): readonly Route[] {
  const routes: readonly Route[] = [
    openApiRoute((major) => openApiDocument(routes, { major, version: deps.config.version })),
    discoveryRoute(deps, majors),
    ...healthRoutes(deps, isDraining),
    // Before runs: `run-x:diff` would name one.
    ...diffRoutes(deps),
    ...runRoutes(deps),
    overviewRoute(deps),
    skipRoute(deps),
    runAtRoute(deps),
    ...causationRoutes(deps),
    ...sessionRoutes(deps),
    sessionEventsRoute(deps, streams),
    ...conversationRoutes(deps),
    eventsRoute(deps, streams),
    pollRoute(deps, streams),
    cancelRoute(deps),
    ...pauseRoutes(deps),
    forkRoute(deps),
    ...cohortRoutes(deps),
    debugBundleRoute(deps),
    runBundleRoute(deps),
    interruptRoute(deps),
    ...catalogRoutes(deps),
    ...pageLinkRoutes(deps, { sessions, streams }),
    signInLinkRoute(sessions),
    questionsRoute(deps),
    childrenRoute(deps),
    ...retentionRoutes(deps),
    ...subjectRoutes(deps),
    ...opensentienceRoutes(deps),
    ...buildRoutes(deps),
  ];
  return routes;
}
