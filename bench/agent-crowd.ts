// Many agents in one process, each on a connection of its own with a token of its own (seed 004 §5.3): what many
// connected agents cost Core is measured without as many node processes.
import process from 'node:process';
import { agent, type Credentials } from '../src/agent-sdk/index.ts';
import { SOCKET_VARIABLE, TOKEN_VARIABLE } from '../src/opensentience/messages.ts';
import { echoTool } from './echo-agent.ts';

export type CrowdOrder = readonly (Credentials & { readonly agentId: string })[];

process.on('message', (order: CrowdOrder) => {
  for (const { agentId, socket, token } of order) {
    const surroundings = {
      env: { [SOCKET_VARIABLE]: socket, [TOKEN_VARIABLE]: token },
      onStop: () => () => undefined,
      exit: () => undefined,
      log: () => undefined,
    };
    void agent({ id: agentId, version: '1.0.0', tools: [echoTool], surroundings }).run();
  }
});
// The bench has ended.
process.on('disconnect', () => process.exit());
