import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TrawlError } from '../src/errors.ts';

/** The part of `@aws-sdk/client-s3` that copies need. It is loaded on demand, because it is larger than Trawl itself. */
type S3Module = typeof import('@aws-sdk/client-s3');
export type S3 = InstanceType<S3Module['S3']>;

const PACKAGE = '@aws-sdk/client-s3';

/**
 * A client with the credentials and the region of the environment, of the AWS configuration files, or of the machine's role.
 *
 * @param options.endpoint of a storage other than Amazon's, such as MinIO or Ceph.
 * @throws TrawlError PACKAGE_MISSING.
 */
export async function openS3(options: {
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly anonymous: boolean;
}): Promise<S3> {
  const { S3 } = await loadPackage();
  const { endpoint, region, anonymous } = options;
  return new S3({
    // One attempt: the copy itself repeats, and says so.
    maxAttempts: 1,
    // The manifest has checksums of the whole files. The storage has them only of uploaded parts.
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(region === undefined ? {} : { region }),
    // An own storage often has no region, but a signature needs one.
    ...(region === undefined && endpoint !== undefined ? { region: 'us-east-1' } : {}),
    ...(anonymous ? { signer: { sign: async (request) => request } } : {}),
  });
}

/** From beside Trawl, else from the current folder. */
async function loadPackage(): Promise<S3Module> {
  try {
    return await import(PACKAGE);
  } catch {
    try {
      const path = createRequire(join(process.cwd(), 'package.json')).resolve(PACKAGE);
      return (await import(pathToFileURL(path).href)) as S3Module;
    } catch (cause) {
      throw new TrawlError(
        'PACKAGE_MISSING',
        `An index in an object storage is read with the package ${PACKAGE}, which is not installed. Install it beside Trawl, ` +
          `with \`npm install -g ${PACKAGE}@3\`, or in the current folder, with \`npm install ${PACKAGE}@3\`.`,
        { cause },
      );
    }
  }
}
