// What the facade takes from the pages: pure renderers and the assets.
export { PAGE_ASSETS } from './assets.ts';
export { renderErrorPage, renderLinkPage } from './link-page.ts';
export { renderRunPage, type RunPageModel } from './run-page.ts';
