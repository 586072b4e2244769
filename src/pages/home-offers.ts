// The part of the host's page that says what can be started: workflows, agents, and the files that were left out.
import { escapeExact, escapeHtml } from './timeline-html.js';

export interface OffersModel {
  readonly workflows: readonly {
    readonly workflowId: string;
    readonly name: string;
    readonly version: string;
    readonly description?: string;
    readonly steps: number;
  }[];
  readonly agents: readonly {
    readonly agentId: string;
    readonly label: string;
    readonly persona: string;
    readonly modelClass: string;
    readonly description?: string;
    /** What it asks for and this host lacks. */
    readonly degraded: readonly string[];
  }[];
  readonly faults: {
    readonly faults: readonly {
      readonly what: 'workflow' | 'agent' | 'script' | 'folder';
      readonly source: string;
      readonly pointer: string;
      readonly message: string;
    }[];
    /** Those that are not kept. */
    readonly more: number;
  };
}

/** Of each kind; the API lists all. */
const SHOWN = 200;
/** Of a description, in characters. */
const DESCRIPTION_LENGTH = 280;

export function renderOffers({ workflows, agents, faults }: OffersModel): string {
  return `<section aria-labelledby="workflows-title"><h2 id="workflows-title">Workflows</h2>
${renderFaults(faults)}
${workflows.length === 0 ? '<p class="lead">No workflow is loaded. Put a definition as a JSON file into the folder that <code>OPENWOP_FIXTURES_DIR</code> names, and start the host again.</p>' : ''}
<ul class="cards offers">${workflows.slice(0, SHOWN).map(workflow).join('\n')}</ul>${rest(workflows.length)}</section>
<section aria-labelledby="agents-title"><h2 id="agents-title">Agents</h2>
${agents.length === 0 ? '<p class="lead">No agent is loaded. Workflows without agents run as they are; a manifest in the folder that <code>OPENWOP_AGENTS_DIR</code> names adds one.</p>' : ''}
<ul class="cards offers">${agents.slice(0, SHOWN).map(agent).join('\n')}</ul>${rest(agents.length)}</section>`;
}

function rest(count: number): string {
  return count > SHOWN ? `<p class="facts">${count - SHOWN} more are loaded.</p>` : '';
}

function shortened(text: string): string {
  return text.length > DESCRIPTION_LENGTH ? `${text.slice(0, DESCRIPTION_LENGTH)}…` : text;
}

function workflow({
  workflowId,
  name,
  version,
  description,
  steps,
}: OffersModel['workflows'][number]): string {
  const url = `/pages/start/${encodeURIComponent(workflowId)}`;
  const about = description ? `<p>${escapeHtml(shortened(description))}</p>` : '';
  return `<li class="card"><h3>${escapeHtml(name)}</h3>${about}<p class="facts">version ${escapeHtml(version)} · ${steps} ${steps === 1 ? 'step' : 'steps'} · <code>${escapeHtml(workflowId)}</code></p><p><a class="button" href="${escapeExact(url)}">Start a run<span class="unseen"> of ${escapeHtml(name)}</span></a></p></li>`;
}

function agent({
  agentId,
  label,
  persona,
  modelClass,
  description,
  degraded,
}: OffersModel['agents'][number]): string {
  const about = description ?? (persona === label ? '' : persona);
  const lacks =
    degraded.length === 0
      ? ''
      : `<p class="facts lacks">Works without what this host lacks: ${escapeHtml(degraded.join(', '))}</p>`;
  return `<li class="card"><h3>${escapeHtml(label)}</h3>${about ? `<p>${escapeHtml(shortened(about))}</p>` : ''}<p class="facts">model class ${escapeHtml(modelClass)} · <code>${escapeHtml(agentId)}</code></p>${lacks}</li>`;
}

const CALLED = {
  workflow: 'Workflow',
  agent: 'Agent',
  script: 'Script of an agent',
  folder: 'Folder',
} as const;

/** What was left out, each with its place and what to do. */
function renderFaults({ faults, more }: OffersModel['faults']): string {
  const files = new Set(faults.map(({ source }) => source)).size;
  if (files === 0) return '';
  const items = faults.map(({ what, source, pointer, message }) => {
    const place = pointer === '' ? '' : ` at <code>${escapeHtml(pointer)}</code>`;
    return `<li>${CALLED[what]} <b>${escapeHtml(source)}</b>${place}: ${escapeHtml(message)}</li>`;
  });
  const rest = more > 0 ? `<li>and ${more} more, named in the host’s log</li>` : '';
  return `<details class="notice error faults" open><summary>${files === 1 ? 'One file was' : `${files} files were`} left out when the host started</summary><ul>${items.join('')}${rest}</ul><p>Mend the place that is named, and start the host again: it reads its files at the start. The others work meanwhile.</p></details>`;
}
