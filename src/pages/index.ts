// What the facade takes from the pages: pure renderers and the assets.
export { PAGE_ASSETS } from './assets.ts';
export { renderAtPage, type AtPageModel } from './at-page.ts';
export { renderCausesPage, type CausesPageModel, type CauseStep } from './causes-page.ts';
export { renderCohortPage, renderCohortsPage } from './cohort-page.ts';
export { renderDeploymentsPage } from './deployments-page.ts';
export { renderDiffPage } from './diff-page.ts';
export {
  controlOf,
  FORK_CONTROLS,
  promptTexts,
  sentFork,
  type ForkAgent,
  type ForkFault,
} from './fork-fields.ts';
export { renderForkPage, type ForkPageModel } from './fork-page.ts';
export { renderHomePage, type HomePageModel } from './home.ts';
export { renderErrorPage, renderLinkPage, type ErrorPageModel } from './link-page.ts';
export type { RunControl } from './run-controls.ts';
export { renderRunPage, type RunPageModel } from './run-page.ts';
export { renderSignInLinkPage, renderSignInPage, type SignInModel } from './sign-in.ts';
export {
  AGENT_FIELDS,
  fieldsOf,
  filledForm,
  sentInputs,
  TAGS_POINTER,
  type FormTexts,
  type InputFault,
  type SentInputs,
  type StartField,
} from './start-fields.ts';
export { REHEARSAL_CONTROL, renderStartPage, type StartPageModel } from './start-form.ts';
