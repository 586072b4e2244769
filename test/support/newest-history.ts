// The events that Temporal has of the newest segment of a run, by a connection of their own.
import { Client } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { TestHost } from './host.ts';

export async function newestHistory(
  place: TestHost['temporal'],
  runId: string,
): Promise<readonly temporal.api.history.v1.IHistoryEvent[]> {
  const connection = connectTemporal(place);
  try {
    const { workflow } = new Client({ connection, namespace: place.namespace });
    const { events } = await workflow.getHandle(runId).fetchHistory();
    return events ?? [];
  } finally {
    await connection.close();
  }
}
