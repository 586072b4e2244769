// A notebook as an agent (seed 004), with the SDK: four tools over a store that survives the process.
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { agent, tool, ToolError } from 'openwop-temporal/agent-sdk';
import { Notes } from './notes.ts';

const PAGE_SIZE = 20;
const PAGE_PAUSE_MS = 10;
const notes = new Notes(env.NOTEBOOK_DIR ?? fileURLToPath(new URL('.data', import.meta.url)));

const note = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    title: { type: 'string' },
    text: { type: 'string' },
    addedAt: { type: 'string' },
  },
  required: ['id', 'title', 'text', 'addedAt'],
  additionalProperties: false,
} as const;

const addNote = tool({
  name: 'add_note',
  description: 'Adds a note to the notebook.',
  input: {
    type: 'object',
    properties: {
      title: { type: 'string', minLength: 1, maxLength: 200 },
      text: { type: 'string', maxLength: 20_000 },
    },
    required: ['title', 'text'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { note, repeated: { type: 'boolean' } },
    required: ['note', 'repeated'],
    additionalProperties: false,
  },
  sideEffects: true,
  idempotent: true,
  tags: ['notes'],
  run: ({ title, text }, { idempotencyKey }) => notes.add(title, text, idempotencyKey),
});

const searchNotes = tool({
  name: 'search_notes',
  description: 'Finds notes that contain the words, newest first.',
  input: {
    type: 'object',
    properties: {
      words: { type: 'string', minLength: 1, maxLength: 200 },
      limit: { type: 'integer', minimum: 1, maximum: 50, default: 10 },
    },
    required: ['words'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { notes: { type: 'array', items: note } },
    required: ['notes'],
    additionalProperties: false,
  },
  sideEffects: false,
  tags: ['notes'],
  run: ({ words, limit = 10 }) => ({ notes: notes.search(words, limit) }),
});

const listNotes = tool({
  name: 'list_notes',
  description: 'Lists the titles of all notes, page by page.',
  input: { type: 'object', additionalProperties: false },
  output: {
    type: 'object',
    properties: { count: { type: 'integer' }, pages: { type: 'integer' } },
    required: ['count', 'pages'],
  },
  streaming: true,
  sideEffects: false,
  tags: ['notes'],
  run: async (_, { stream, signal }) => {
    let [count, pages, after] = [0, 0, 0];
    for (;;) {
      signal.throwIfAborted();
      const page = notes.page(after, PAGE_SIZE);
      const last = page.at(-1);
      if (!last) return { count, pages };
      [count, pages, after] = [count + page.length, pages + 1, last.id];
      stream.partial({ page: pages, notes: page.map(({ id, title }) => ({ id, title })) });
      // Other calls have their turn between two pages, and so has a cancel.
      await sleep(PAGE_PAUSE_MS);
    }
  },
});

const deleteNote = tool({
  name: 'delete_note',
  description: 'Deletes a note for good.',
  input: {
    type: 'object',
    properties: { id: { type: 'integer', minimum: 1 } },
    required: ['id'],
    additionalProperties: false,
  },
  output: { type: 'object', properties: { deleted: { type: 'integer' } }, required: ['deleted'] },
  sideEffects: true,
  tags: ['notes'],
  run: ({ id }) => {
    if (!notes.delete(id)) throw new ToolError('notebook.not_found', 'There is no such note.');
    return { deleted: id };
  },
});

await agent({
  id: 'com.example.notebook',
  version: '1.0.0',
  manifest: new URL('opensentience.agent.json', import.meta.url),
  tools: [addNote, searchNotes, listNotes, deleteNote],
}).run();
notes.close();
