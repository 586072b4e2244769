// Entry of the workflow bundle.
export { runWorkflow } from './run.ts';
