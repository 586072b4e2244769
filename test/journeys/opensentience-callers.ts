// The runs of the journeys with agents as processes: what each one's scripted model says and calls.
import { GUEST } from '../support/opensentience/guest-agent.ts';
import { RUDE } from '../support/opensentience/rude-agent.ts';
import { FILE, type Caller } from './opensentience-scene.ts';

export const TOOL = {
  addNote: 'com.example.notebook/add_note',
  listNotes: 'com.example.notebook/list_notes',
  postEntry: 'com.example.ledger/post_entry',
  balance: 'com.example.ledger/balance',
  slowReport: 'com.example.ledger/slow_report',
  checksum: 'com.example.files/checksum',
  grep: 'com.example.files/grep_files',
  /** Registered, and in nobody's allowlist. */
  listFiles: 'com.example.files/list_files',
  /** In an allowlist, and registered by nobody. */
  unknown: 'com.example.ledger/nothing',
  greet: `${GUEST}/greet`,
  odd: `${RUDE}/odd`,
  blab: `${RUDE}/blab`,
  whine: `${RUDE}/whine`,
} as const;

/** Of the report that is cancelled: longer than any test lives. */
const ENDLESS_STEPS = 1_000;
/** Of the report that a host stops in: it takes longer than a host that stops lets calls go on. */
export const LASTING_STEPS = 65;

function posting(text: string, cents: number) {
  const lines = [
    { account: 'cash', cents },
    { account: 'equity', cents: -cents },
  ];
  return { toolId: TOOL.postEntry, arguments: { text, lines } };
}

function final(decision: object) {
  return { chunks: ['Done.'], final: { decision, confidence: 0.95 } };
}

function reporting(name: string, steps: number): Caller {
  return {
    name,
    toolAllowlist: [TOOL.slowReport],
    turns: [
      { chunks: ['I report.'], calls: [{ toolId: TOOL.slowReport, arguments: { steps } }] },
      final({ done: true }),
    ],
  };
}

export const CALLERS: readonly Caller[] = [
  {
    name: 'desk',
    inputs: ['title', 'text', 'word'],
    toolAllowlist: [
      ...[TOOL.addNote, TOOL.checksum, TOOL.grep, TOOL.slowReport, TOOL.postEntry, TOOL.balance],
    ],
    turns: [
      {
        chunks: ['I note it, and look at the file.'],
        calls: [
          { toolId: TOOL.addNote, arguments: { title: '{{task.title}}', text: '{{task.text}}' } },
          { toolId: TOOL.checksum, arguments: { path: FILE } },
        ],
      },
      {
        chunks: ['I search.'],
        calls: [
          { toolId: TOOL.grep, arguments: { text: '{{task.word}}' } },
          { toolId: TOOL.slowReport, arguments: { steps: 2 } },
        ],
      },
      { chunks: ['I post it.'], calls: [posting('{{results.1.sha256}}', 1_250)] },
      {
        chunks: ['I look.'],
        calls: [{ toolId: TOOL.balance, arguments: { account: 'cash' } }],
      },
      final({
        title: '{{results.0.note.title}}',
        matches: '{{results.2.matches}}',
        entry: '{{results.4.number}}',
        cents: '{{results.5.cents}}',
      }),
    ],
  },
  {
    name: 'poster',
    inputs: ['text'],
    toolAllowlist: [TOOL.postEntry],
    turns: [
      { chunks: ['I post it.'], calls: [posting('{{task.text}}', 99)] },
      final({ code: '{{results.0.error.code}}', number: '{{results.0.number}}' }),
    ],
  },
  reporting('endless', ENDLESS_STEPS),
  reporting('reporter', LASTING_STEPS),
  {
    name: 'clumsy',
    toolAllowlist: [TOOL.addNote, TOOL.checksum, TOOL.unknown],
    turns: [
      {
        chunks: ['I try.'],
        calls: [
          { toolId: TOOL.addNote, arguments: { title: '', text: 'no title' } },
          { toolId: TOOL.addNote, arguments: { title: 'a', text: 'b', colour: 'red' } },
          { toolId: TOOL.checksum, arguments: ['no object'] },
          { toolId: TOOL.unknown, arguments: {} },
          { toolId: TOOL.listFiles, arguments: {} },
        ],
      },
      final({
        codes: [0, 1, 2, 3, 4].map((index) => `{{results.${index}.error.code}}`),
        why: '{{results.0.error.message}}',
      }),
    ],
  },
  {
    name: 'reader',
    toolAllowlist: [TOOL.listNotes],
    turns: [
      { chunks: ['I read.'], calls: [{ toolId: TOOL.listNotes, arguments: {} }] },
      final({ count: '{{results.0.count}}' }),
    ],
  },
  {
    name: 'greeter',
    inputs: ['name'],
    toolAllowlist: [TOOL.greet],
    turns: [
      {
        chunks: ['I greet.'],
        calls: [{ toolId: TOOL.greet, arguments: { name: '{{task.name}}' } }],
      },
      final({ said: '{{results.0.greeting}}', pid: '{{results.0.pid}}' }),
    ],
  },
  {
    name: 'broken',
    toolAllowlist: [TOOL.odd],
    turns: [
      { chunks: ['I ask.'], calls: [{ toolId: TOOL.odd, arguments: {} }] },
      final({ code: '{{results.0.error.code}}', number: '{{results.0.number}}' }),
    ],
  },
  {
    name: 'gossip',
    toolAllowlist: [TOOL.blab, TOOL.whine],
    turns: [
      {
        chunks: ['I listen.'],
        calls: [
          { toolId: TOOL.blab, arguments: {} },
          { toolId: TOOL.whine, arguments: {} },
        ],
      },
      final({ heard: '{{results.0.said}}', complaint: '{{results.1.error.message}}' }),
    ],
  },
];
