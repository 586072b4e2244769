// An agent process that Core launches (seed 004 §5.2): one tool, as quick as a tool can be.
import { env } from 'node:process';
import { agent, tool } from '../src/agent-sdk/index.ts';
import { echo, ECHO_DESCRIPTION, ECHO_INPUT, ECHO_NAME, ECHO_OUTPUT } from './echo.ts';

export const echoTool = tool({
  name: ECHO_NAME,
  sideEffects: false,
  description: ECHO_DESCRIPTION,
  input: ECHO_INPUT,
  output: ECHO_OUTPUT,
  run: echo,
});

// Its manifest names it; whoever imports the tool does not.
const { BENCH_AGENT_ID: id } = env;
if (id !== undefined) await agent({ id, version: '1.0.0', tools: [echoTool] }).run();
