// Connections to Temporal: the one of client and history reader (grpc-js), and the worker's native one, with TLS and
// API key for Temporal Cloud (architecture §7).
import { readFileSync } from 'node:fs';
import { Connection, type TLSConfig } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { CONNECTION_DEFAULTS } from './rpc.ts';

export interface TemporalTarget {
  /** host:port */
  readonly address: string;
  readonly namespace: string;
  readonly apiKey?: string;
  /** Absent: no TLS. Paths of PEM files. */
  readonly tls?: {
    readonly caPath?: string;
    readonly certPath?: string;
    readonly keyPath?: string;
    readonly serverName?: string;
  };
}

/** The files are read at each connect: renewed certificates are used from then on. */
function tlsOf({ tls }: TemporalTarget): TLSConfig | undefined {
  if (!tls) return undefined;
  const { caPath, certPath, keyPath, serverName } = tls;
  const clientCertPair =
    certPath && keyPath ? { crt: readFileSync(certPath), key: readFileSync(keyPath) } : undefined;
  return {
    ...(serverName && { serverNameOverride: serverName }),
    ...(caPath && { serverRootCACertificate: readFileSync(caPath) }),
    ...(clientCertPair && { clientCertPair }),
  };
}

/** Dials with the first call and whenever the server comes back: a facade starts and serves without Temporal. */
export function connectTemporal(target: TemporalTarget): Connection {
  return Connection.lazy({
    ...CONNECTION_DEFAULTS,
    address: target.address,
    tls: tlsOf(target) ?? null,
    ...(target.apiKey !== undefined && { apiKey: target.apiKey }),
  });
}

/** Rejects at once when the server is away. */
export function connectWorker(target: TemporalTarget): Promise<NativeConnection> {
  return NativeConnection.connect({
    address: target.address,
    tls: tlsOf(target) ?? null,
    ...(target.apiKey !== undefined && { apiKey: target.apiKey }),
  });
}
