import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** An authority of the test's own, and what it signs. */
export class TestAuthority {
  readonly #folder: string;
  /** The file that NODE_EXTRA_CA_CERTS names. */
  readonly file: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.file = join(folder, 'authority.pem');
    const subject = ['-subj', '/CN=test authority', '-days', '2'];
    this.#openssl('req', '-x509', ...KEY, '-keyout', join(folder, 'authority.key'), '-out', this.file, ...subject);
  }

  /** @param names such as `DNS:localhost`. @param days −1: expired yesterday. */
  certificate(names: string, days = 2): ServerOptions {
    const [key, wish, cert, extensions] = ['key', 'csr', 'pem', 'ext'].map((end) =>
      join(this.#folder, `server.${end}`),
    );
    this.#openssl('req', ...KEY, '-keyout', key!, '-out', wish!, '-subj', '/CN=test server');
    writeFileSync(extensions!, `subjectAltName=${names}\n`);
    const signer = ['-CA', this.file, '-CAkey', join(this.#folder, 'authority.key'), '-CAcreateserial'];
    this.#openssl(
      'x509',
      '-req',
      '-in',
      wish!,
      ...signer,
      '-days',
      String(days),
      '-extfile',
      extensions!,
      '-out',
      cert!,
    );
    return { key: readFileSync(key!), cert: readFileSync(cert!) };
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  }
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Passes requests on to a port of the loopback address, with TLS before it, as the security plugin of OpenSearch has it. */
export class TlsProxy {
  readonly port: number;
  /** The header Authorization of each request; undefined where there was none. */
  readonly authorizations: (string | undefined)[] = [];
  readonly #stop: () => Promise<void>;

  private constructor(port: number, stop: () => Promise<void>) {
    this.port = port;
    this.#stop = stop;
  }

  /**
   * @param tls a certificate; undefined: without TLS.
   * @param user `NAME:PASSWORD` that requests need; others get 401, as from the security plugin.
   */
  static async start(target: number, { tls, user }: { tls?: ServerOptions; user?: string }): Promise<TlsProxy> {
    const answer = (incoming: IncomingMessage, response: ServerResponse): void => {
      const { authorization } = incoming.headers;
      proxy.authorizations.push(authorization);
      if (user !== undefined && authorization !== `Basic ${Buffer.from(user).toString('base64')}`) {
        response.writeHead(401, { 'content-type': 'text/plain', 'www-authenticate': 'Basic' }).end('Unauthorized');
        return;
      }
      const { method, url: path, headers } = incoming;
      const onward = request({ host: '127.0.0.1', port: target, method, path, headers }, (reply) => {
        response.writeHead(reply.statusCode!, reply.headers);
        reply.pipe(response);
      });
      onward.on('error', () => response.destroy());
      incoming.pipe(onward);
    };
    const server = tls === undefined ? createPlainServer(answer) : createServer(tls, answer);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new TlsProxy((server.address() as AddressInfo).port, async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    });
    return proxy;
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}
