// What the facade takes from the pages: pure renderers, the assets, and the reading of a sent form.
export { resumeValueOf, type AnswerForm, type PageInterrupt, type ResumeValue } from './answer.ts';
export { choicesOf, type Choice } from './choices.ts';
export { PAGE_ASSETS, type PageAsset } from './assets.ts';
export {
  renderErrorPage,
  renderLinkPage,
  type ErrorPageModel,
  type LinkPageModel,
} from './link-page.ts';
export { renderRunPage, type RunPageModel } from './run-page.ts';
