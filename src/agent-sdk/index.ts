// The agent SDK (seed 004): agents as processes of their own that bring tools to an OpenSentience Core. It needs nothing
// of the host but the messages and frames that both sides speak.
export { agent, RECONNECT } from './agent.ts';
export type { Agent, AgentEnd, AgentOptions, Reconnect } from './agent.ts';
export { AgentError, ToolError } from './errors.ts';
export type { ToolErrorOptions } from './errors.ts';
export { AGENT_LIMITS } from './limits.ts';
export type { AgentLimits } from './limits.ts';
export type { Registration } from './registration.ts';
export type { Health } from './session.ts';
export type { Credentials, Surroundings } from './surroundings.ts';
export { tool } from './tool.ts';
export type { ObjectSchema, Tool, ToolCall, ToolOptions, ToolStream, ValueOf } from './tool.ts';
