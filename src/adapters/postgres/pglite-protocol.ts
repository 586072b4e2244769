// Messages between a client and the PGlite worker thread. A client numbers its requests and its transactions itself:
// it may send BEGIN and the first statement without waiting in between.
import type { MessagePort } from 'node:worker_threads';
import type { SqlValue } from './db.ts';

export type PgliteRequest = { readonly id: number } & (
  | {
      readonly op: 'query';
      readonly text: string;
      readonly values: readonly SqlValue[];
      readonly tx?: number;
    }
  | { readonly op: 'script'; readonly text: string; readonly tx: number }
  | { readonly op: 'begin'; readonly tx: number; readonly limitMs: number }
  | { readonly op: 'commit' | 'rollback'; readonly tx: number }
  | { readonly op: 'listen'; readonly channel: string }
);

export interface PgliteFault {
  readonly message: string;
  /** SQLSTATE; absent when the worker itself gave up. */
  readonly code?: string;
  readonly constraint?: string;
  /** The function of the server that said so. */
  readonly routine?: string;
}

export type PgliteReply =
  | { readonly id: number; readonly rows: readonly unknown[] }
  | { readonly id: number; readonly fault: PgliteFault }
  | { readonly channel: string; readonly payload: string };

/** What the owner of the worker says to it, and hears from it. */
export type PgliteCommand =
  { readonly kind: 'connect'; readonly port: MessagePort } | { readonly kind: 'close' };
export type PgliteNotice =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly fault: PgliteFault }
  | { readonly kind: 'closed' };
