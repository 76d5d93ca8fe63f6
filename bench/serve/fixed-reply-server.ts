import { createServer } from 'node:net';

/**
 * Sends the same reply to every request without reading it, to measure the load generator itself. Writes {"url": …} when it is
 * ready.
 */
const BODY = '{"result":[[]]}';
const REPLY = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
const server = createServer((socket) => {
  socket.on('error', () => undefined);
  // The generator sends small requests one at a time, so each chunk is a whole request.
  socket.on('data', () => socket.write(REPLY));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`{"url":"http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}"}\n`);
});
