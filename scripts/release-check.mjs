// `node scripts/release-check.mjs vVERSION`, the first step of a release: refuses a tag that does not fit what would be published.
// With GITHUB_REPOSITORY, package.json must name that repository, because npm refuses --provenance for another one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, root } from './steps.mjs';

const [tag, ...others] = process.argv.slice(2);
if (tag === undefined || others.length > 0) fail('Usage: node scripts/release-check.mjs vVERSION');
const { version, repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const expected = process.env.GITHUB_REPOSITORY ?? 'OWNER/NAME';
const address = typeof repository === 'string' ? repository : repository?.url;
const problems = [];
if (tag !== `v${version}`)
  problems.push(`The tag is ${tag}, but package.json has version ${version}: expected the tag v${version}.`);
const named = /github(?:\.com[/:]|:)(.+?)(?:\.git)?$/i.exec(address ?? '')?.[1];
if (address === undefined)
  problems.push(
    `package.json has no repository, which npm publish --provenance needs. Add "repository": { "type": "git", "url": "git+https://github.com/${expected}.git" }.`,
  );
else if (process.env.GITHUB_REPOSITORY !== undefined && named?.toLowerCase() !== expected.toLowerCase())
  problems.push(`package.json has the repository ${address}; expected github.com/${expected}, which has the tag.`);
if (problems.length > 0) fail(problems.join('\n'));
