// Entry of the workflow bundle.
export { cohortWorkflow } from './cohort.ts';
export { runWorkflow } from './run.ts';
