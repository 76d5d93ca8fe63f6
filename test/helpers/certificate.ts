import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** For the `skip` option of a test: false if certificates can be made, else the reason. */
export function withoutOpenssl(): string | false {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'openssl is not installed';
  }
}

export interface Certificate {
  /** The paths of the files; `cert` and `key` are their contents. */
  readonly files: { readonly cert: string; readonly key: string };
  readonly cert: string;
  readonly key: string;
}

/** A self-signed certificate for localhost, written to a folder. */
export function makeCertificate(folder: string): Certificate {
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const out = ['-keyout', files.key, '-out', files.cert];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, ...out], { stdio: 'ignore' });
  return { files, cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') };
}
