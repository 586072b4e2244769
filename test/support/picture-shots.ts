// The pictures of docs/: the page that each shows (taken by pictures.ts).

export interface Shot {
  readonly name: string;
  readonly path: (runs: Runs) => string;
  readonly phone?: true;
  /** Something that the script shows, which is waited for. */
  readonly shows?: string;
}

/** Ids of the runs that are shown. */
export interface Runs {
  readonly refund: string;
  readonly access: string;
  readonly research: string;
}

export const SHOTS: readonly Shot[] = [
  { name: 'home', path: () => '/pages' },
  { name: 'question', path: ({ refund }) => `/pages/runs/${refund}` },
  { name: 'start', path: () => '/pages/start/access-request' },
  { name: 'gate-on-a-phone', path: ({ access }) => `/pages/runs/${access}`, phone: true },
  {
    name: 'threads',
    path: ({ research }) => `/pages/runs/${research}`,
    shows: '.thread .item.question.waiting',
  },
];
