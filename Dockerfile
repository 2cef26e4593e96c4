FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /ninelives ./cmd/ninelives && mkdir /state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /ninelives /ninelives
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
ENV NINELIVES_JOURNAL=/state/journal.db
VOLUME /state
EXPOSE 9009
# Client keys or TLS in the configuration, or --insecure: see docs/operations.md.
ENTRYPOINT ["/ninelives"]
CMD ["serve", "--listen", "0.0.0.0:9009"]
