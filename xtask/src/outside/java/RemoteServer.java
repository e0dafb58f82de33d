package com.github.tomakehurst.wiremock;

import com.github.tomakehurst.wiremock.admin.model.GetGlobalSettingsResult;
import com.github.tomakehurst.wiremock.admin.model.ListStubMappingsResult;
import com.github.tomakehurst.wiremock.client.CountMatchingStrategy;
import com.github.tomakehurst.wiremock.client.HttpAdminClient;
import com.github.tomakehurst.wiremock.client.MappingBuilder;
import com.github.tomakehurst.wiremock.client.WireMock;
import com.github.tomakehurst.wiremock.core.Options;
import com.github.tomakehurst.wiremock.core.WireMockConfiguration;
import com.github.tomakehurst.wiremock.global.GlobalSettings;
import com.github.tomakehurst.wiremock.matching.RequestPatternBuilder;
import com.github.tomakehurst.wiremock.matching.StringValuePattern;
import com.github.tomakehurst.wiremock.recording.RecordSpecBuilder;
import com.github.tomakehurst.wiremock.recording.RecordingStatusResult;
import com.github.tomakehurst.wiremock.recording.SnapshotRecordResult;
import com.github.tomakehurst.wiremock.stubbing.ServeEvent;
import com.github.tomakehurst.wiremock.stubbing.StubMapping;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;

/** `plimsoll up` with a mock and its admin API on one port, in the place of a WireMockServer within the test. */
public class RemoteServer {
  private static final String CONFIGURATION =
      """
      [[listen]]
      address = "127.0.0.1:0"
      [admin]
      address = "127.0.0.1:%d"
      [[route]]
      prefix = "/__admin"
      proxy = { to = "http://127.0.0.1:%d" }
      [[route]]
      mock = { file = "%s" }
      """;

  private final Process process;
  private final int port;
  private final WireMock client;

  public RemoteServer(Options options) {
    this(options.filesRoot().getPath());
  }

  public RemoteServer(String root) {
    try {
      new File(root, "mappings").mkdirs();
      int admin;
      try (ServerSocket free = new ServerSocket(0)) {
        admin = free.getLocalPort();
      }
      Path file = Files.createTempFile("up", ".toml");
      Files.writeString(file, CONFIGURATION.formatted(admin, admin, new File(root).getAbsolutePath()));
      process =
          new ProcessBuilder(System.getProperty("plimsoll"), "up", file.toString())
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
      BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()));
      String line = lines.readLine();
      if (line == null) throw new IOException("plimsoll has ended");
      port = Integer.parseInt(line.replaceAll("^.*:([0-9]+)/?.*$", "$1"));
      client = new WireMock("127.0.0.1", port);
    } catch (IOException error) {
      throw new RuntimeException(error);
    }
  }

  public void start() {}

  public void stop() {
    process.destroy();
  }

  public boolean isRunning() {
    return process.isAlive();
  }

  public int port() {
    return port;
  }

  public int getPort() {
    return port;
  }

  public String baseUrl() {
    return "http://localhost:" + port;
  }

  public String url(String path) {
    return baseUrl() + path;
  }

  public HttpAdminClient admin() {
    return new HttpAdminClient("127.0.0.1", port);
  }

  public Options getOptions() {
    return WireMockConfiguration.wireMockConfig();
  }

  public StubMapping stubFor(MappingBuilder mapping) {
    return client.register(mapping);
  }

  public void editStub(MappingBuilder mapping) {
    client.editStubMapping(mapping);
  }

  public void removeStub(StubMapping mapping) {
    client.removeStubMapping(mapping);
  }

  public void removeStubMapping(StubMapping mapping) {
    client.removeStubMapping(mapping);
  }

  public void removeStubMapping(UUID id) {
    client.removeStubMapping(id);
  }

  public void removeStubsByMetadata(StringValuePattern pattern) {
    admin().removeStubsByMetadata(pattern);
  }

  public List<StubMapping> getStubMappings() {
    return client.allStubMappings().getMappings();
  }

  public ListStubMappingsResult listAllStubMappings() {
    return client.allStubMappings();
  }

  public StubMapping getSingleStubMapping(UUID id) {
    return client.getStubMapping(id).getItem();
  }

  public void verify(RequestPatternBuilder pattern) {
    client.verifyThat(pattern);
  }

  public void verify(int count, RequestPatternBuilder pattern) {
    client.verifyThat(count, pattern);
  }

  public void verify(CountMatchingStrategy count, RequestPatternBuilder pattern) {
    client.verifyThat(count, pattern);
  }

  public List<LoggedRequest> findAll(RequestPatternBuilder pattern) {
    return client.find(pattern);
  }

  public List<ServeEvent> getAllServeEvents() {
    return client.getServeEvents();
  }

  public void resetMappings() {
    client.resetMappings();
  }

  public void resetRequests() {
    client.resetRequests();
  }

  public void updateGlobalSettings(GlobalSettings settings) {
    client.updateGlobalSettings(settings);
  }

  public GetGlobalSettingsResult getGlobalSettings() {
    return admin().getGlobalSettings();
  }

  public SnapshotRecordResult snapshotRecord() {
    return admin().snapshotRecord();
  }

  public SnapshotRecordResult snapshotRecord(RecordSpecBuilder spec) {
    return admin().snapshotRecord(spec);
  }

  public void startRecording(String url) {
    admin().startRecording(url);
  }

  public void startRecording(RecordSpecBuilder spec) {
    admin().startRecording(spec);
  }

  public SnapshotRecordResult stopRecording() {
    return admin().stopRecording();
  }

  public RecordingStatusResult getRecordingStatus() {
    return admin().getRecordingStatus();
  }
}
