import { TrawlError } from '../../base/errors.ts';
import { credentialLines } from '../published/credential-lines.ts';
import { type OpenSearchAddress, serverOf } from './opensearch-address.ts';

/** As the client takes them. */
interface OpenSearchCredentials {
  readonly username: string;
  readonly password: string;
}

interface Line extends OpenSearchCredentials {
  readonly server: string;
  readonly tls: boolean;
}

const VARIABLE = 'TRAWL_OPENSEARCH_CREDENTIALS';
const FILE_VARIABLE = 'TRAWL_OPENSEARCH_CREDENTIALS_FILE';

/**
 * The credentials for an address, from the lines `opensearch+https://USER:PASSWORD@HOST[:PORT]` of the file that
 * TRAWL_OPENSEARCH_CREDENTIALS_FILE names, or of TRAWL_OPENSEARCH_CREDENTIALS. A line belongs to one server and scheme: no other server
 * gets its password, and a password from a line with TLS is only sent over TLS. Undefined if no server of the address has a line.
 *
 * @throws TrawlError CONFIG_INVALID for a file that cannot be read, a line of another form, or if the servers of the address have different
 * lines. No message has a user or password.
 */
export function credentialsFor({ servers, tls }: OpenSearchAddress): OpenSearchCredentials | undefined {
  const lines = credentialLines(VARIABLE, parseLine);
  const found = servers.map((server) => lines.find((line) => line.server === server && line.tls === tls));
  const [first] = found;
  if (found.some((line) => line?.username !== first?.username || line?.password !== first?.password)) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `The servers of the address of OpenSearch have different credentials. Give each of them a line with the same user and password in ${FILE_VARIABLE} or ${VARIABLE}.`,
    );
  }
  return first === undefined ? undefined : { username: first.username, password: first.password };
}

function parseLine(text: string, place: string): Line {
  const [, tls, user, password, host] = /^opensearch(\+https?)?:\/\/([^:@/]+):([^:@/]+)@([^@/]+)\/?$/i.exec(text) ?? [];
  if (user !== undefined) {
    try {
      return {
        server: serverOf(host!),
        tls: /https$/i.test(tls ?? ''),
        username: decodeURIComponent(user),
        password: decodeURIComponent(password!),
      };
    } catch {
      // Not percent-encoded, or not a host: the same advice.
    }
  }
  throw new TrawlError(
    'CONFIG_INVALID',
    `${place} is not opensearch+https://USER:PASSWORD@HOST[:PORT] (or opensearch://…). In user and password, \`@\`, \`:\`, \`/\`, \`%\`, \`,\` and spaces are percent-encoded.`,
  );
}
