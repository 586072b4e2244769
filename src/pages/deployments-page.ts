// The worker's builds as a page (docs/upgrades.md): which takes new runs, which drain, and where runs wait for a worker that
// is not there. It changes nothing: the command line does.
import { renderDocument, renderMoment } from './layout.ts';
import { escapeHtml, SCROLLS } from './timeline-html.js';

export interface BuildRow {
  readonly buildId: string;
  readonly state: string;
  readonly sinceMs?: number;
  readonly share: number;
  readonly openRuns: number;
  readonly heldRuns: number;
  readonly hasWorker: boolean;
}

export interface DeploymentsPageModel {
  readonly builds: readonly BuildRow[];
  readonly runsWithoutWorker: number;
}

const COLUMNS = ['Build', 'State', 'Since', 'New runs', 'Open runs', 'Held runs', 'Worker'];

/** As an HTML document. */
export function renderDeploymentsPage({ builds, runsWithoutWorker }: DeploymentsPageModel): string {
  const runs = runsWithoutWorker === 1 ? '1 run waits' : `${runsWithoutWorker} runs wait`;
  const notice = `<p class="notice error" role="alert">${runs} for a worker of their build, and none is there. Start one, or move the runs: <code>openwop deployments move --all-from BUILD</code>.</p>`;
  const head = COLUMNS.map((name) => `<th scope="col">${name}</th>`).join('');
  const table = `<div class="sides" ${SCROLLS} aria-label="Builds"><table><thead><tr>${head}</tr></thead><tbody>${builds.map(rowOf).join('')}</tbody></table></div>`;
  return renderDocument({
    title: 'Builds',
    body: `<header class="top"><div><p><a href="/pages">Runs</a></p><h1>Builds of the worker</h1></div></header>
<main><div id="notices">${runsWithoutWorker === 0 ? '' : notice}</div>
${builds.length === 0 ? '<p>No worker names a build: each takes what comes.</p>' : table}
<p class="facts">A build holds its runs until they end or are moved. One that is drained can be stopped.</p></main>`,
  });
}

function rowOf(build: BuildRow): string {
  const { buildId, state, sinceMs, share, openRuns, heldRuns, hasWorker } = build;
  const worker = hasWorker ? 'yes' : heldRuns > 0 ? '<strong>none: its runs wait</strong>' : 'none';
  const cells = [
    escapeHtml(state),
    sinceMs === undefined ? '' : renderMoment(sinceMs),
    share === 0 ? '' : `${share} %`,
    ...[openRuns, heldRuns].map(String),
    worker,
  ];
  return `<tr><th scope="row"><code>${escapeHtml(buildId)}</code></th>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}
