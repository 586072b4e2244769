// What the facade takes from the pages: pure renderers, the assets, and the reading of a sent form.
export { resumeValueOf } from './answer.ts';
export { PAGE_ASSETS } from './assets.ts';
export { renderErrorPage, renderLinkPage } from './link-page.ts';
export { renderRunPage, type RunPageModel } from './run-page.ts';
