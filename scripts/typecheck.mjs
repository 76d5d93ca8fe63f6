// `npm run typecheck`: checks the types of all sources, again only what a change concerns.
import { fail, installPackages } from './setup.mjs';
import { typeErrors } from './typescript.mjs';

await installPackages({ development: true });
const errors = await typeErrors();
if (errors !== undefined) fail(errors);
