import { importOptional } from '../../src/base/system/optional-package.ts';

/** The part of `@aws-sdk/client-s3` that copies need. It is loaded on demand, because it is larger than Trawl itself. */
type S3Module = typeof import('@aws-sdk/client-s3');
export type S3 = InstanceType<S3Module['S3']>;

const PACKAGE = '@aws-sdk/client-s3@3';

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
  const [{ S3 }] = (await importOptional(
    [PACKAGE],
    `An index in an object storage is read with the package ${PACKAGE}`,
  )) as [S3Module];
  const { endpoint, region, anonymous } = options;
  return new S3({
    // One attempt: the copy itself repeats, and says so.
    maxAttempts: 1,
    // The manifest has checksums of the whole files. The storage has them only of uploaded parts.
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    region,
    // An own storage often has no region, but a signature needs one.
    ...(region === undefined && endpoint !== undefined ? { region: 'us-east-1' } : {}),
    ...(anonymous ? { signer: { sign: async (request) => request } } : {}),
  });
}
