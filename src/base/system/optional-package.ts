import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isNodeError, TrawlError } from '../errors.ts';

/**
 * Imports packages that are not installed with Trawl, because few need them and they are large: from beside Trawl, else from the
 * current folder.
 *
 * @param packages names, with the version range that is installed: `@aws-sdk/client-s3@3`.
 * @param purpose beginning of the message: `Traces need OpenTelemetry's packages`.
 * @throws TrawlError PACKAGE_MISSING, with the commands that install them.
 */
export async function importOptional(packages: readonly string[], purpose: string): Promise<unknown[]> {
  const names = packages.map((spec) => spec.replace(/(?<=.)@[^@/]*$/, ''));
  try {
    return await Promise.all(names.map(importFromHere));
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    const list = packages.join(' ');
    throw new TrawlError(
      'PACKAGE_MISSING',
      `${purpose}, which ${packages.length === 1 ? 'is' : 'are'} not installed with Trawl. Install beside it with ` +
        `\`npm install -g ${list}\` (in Trawl's image as root, with \`--prefix /opt/trawl\`), or in the current folder with \`npm install ${list}\`.`,
      { cause },
    );
  }
}

async function importFromHere(name: string): Promise<unknown> {
  try {
    return await import(name);
  } catch (error) {
    if (!isMissing(error)) throw error;
    const path = createRequire(join(process.cwd(), 'package.json')).resolve(name);
    return import(pathToFileURL(path).href);
  }
}

function isMissing(error: unknown): boolean {
  return isNodeError(error) && (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND');
}
